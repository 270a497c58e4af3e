#include "probe/live/print.h"

#include <algorithm>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "probe/live/quantity.h"

namespace taskcell::live {
namespace {

std::string Show(Unit unit, uint64_t value) {
  if (value == kUnlimited) return "unlimited";
  switch (unit) {
    case Unit::kBytes:
      return ShowBytes(value);
    case Unit::kCpuMillis:
      return Text(ShowCpuMillis(value), " cores");
    case Unit::kMilliseconds:
      return Text(value, " ms");
    case Unit::kTasks:
    case Unit::kDescriptors:
      break;
  }
  return Text(value);
}

std::string Show(Unit unit, const std::optional<uint64_t>& value) {
  return value ? Show(unit, *value) : "-";
}

std::string_view Words(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHeld:
      return "held";
    case Verdict::kNotHeld:
      return "NOT HELD";
    case Verdict::kUnknown:
      break;
  }
  return "could not tell";
}

std::string Summary(const Report& report) {
  std::string names;
  std::size_t lies = 0;
  Verdict overall = Overall(report);
  for (const Row& row : report.rows) {
    if (row.lie) ++lies;
    if (row.verdict != Verdict::kHeld && row.verdict == overall)
      names += Text(names.empty() ? "" : ", ", row.limit);
  }
  std::string end = Text(" (", Printable(report.engine), ")\n");
  switch (overall) {
    case Verdict::kHeld:
      return "all limits hold" + end;
    case Verdict::kUnknown:
      if (names.empty()) return "could not tell whether limits hold" + end;
      return Text("could not tell whether these limits hold: ", names, end);
    case Verdict::kNotHeld:
      break;
  }
  if (!names.empty()) return Text("limits that do not hold: ", names, end);
  if (lies > 0) return "the limits hold, but not what the engine says about them" + end;
  if (!report.differences.empty()) return "the cell is not what was asked for" + end;
  return "limits cannot be enforced here" + end;
}

std::string Table(const std::vector<Row>& rows) {
  bool any_reported = std::any_of(rows.begin(), rows.end(),
                                  [](const Row& row) { return row.evidence.reported.has_value(); });
  std::vector<std::vector<std::string>> lines = {
      {"LIMIT", "ASKED", "REPORTED", "SEEN", "TRIED", "HAPPENED", "VERDICT"}};
  for (const Row& row : rows) {
    std::string reported = Show(row.unit, row.evidence.reported);
    lines.push_back({row.limit, Show(row.unit, row.evidence.asked),
                     row.lie ? reported + " (untrue)" : reported, Show(row.unit, row.evidence.seen),
                     row.tried, row.happened, std::string(Words(row.verdict))});
  }
  constexpr std::ptrdiff_t kReportedColumn = 2;
  for (std::vector<std::string>& line : lines)
    if (!any_reported) line.erase(line.begin() + kReportedColumn);
  return probe::Columns(lines);
}

void PutLimit(JsonText& json, const char* key, const std::optional<uint64_t>& value) {
  json.Key(key);
  if (!value) {
    json.Null();
  } else if (*value == kUnlimited) {
    json.String("unlimited");
  } else {
    json.Unsigned(*value);
  }
}

void PutRow(JsonText& json, const Row& row) {
  json.Open('{').Key("limit").String(row.limit).Key("unit").String(Name(row.unit));
  PutLimit(json, "asked", row.evidence.asked);
  PutLimit(json, "reported", row.evidence.reported);
  PutLimit(json, "seen", row.evidence.seen);
  json.Key("tried").String(row.tried).Key("happened").String(row.happened);
  json.Key("verdict").String(Name(row.verdict)).Key("why").String(row.why);
  json.Key("lie").Bool(row.lie).Close('}');
}

}  // namespace

std::string ReportText(const Report& report, bool quiet) {
  std::string text = Summary(report);
  if (quiet) return text;
  if (!report.rows.empty()) text += Text('\n', Table(report.rows));
  std::string notes;
  for (const Row& row : report.rows)
    if (!row.why.empty()) notes += Text(row.limit, ": ", row.why, '\n');
  return text + probe::EndText(report, std::move(notes));
}

std::string ReportJson(const Report& report) {
  JsonText json;
  json.Open('{').Key("engine").String(report.engine);
  json.Key("overall").String(Name(Overall(report)));
  json.Key("limits").Open('[');
  for (const Row& row : report.rows) PutRow(json, row);
  json.Close(']');
  probe::PutEnd(json, report);
  json.Close('}');
  return json.text() + "\n";
}

}  // namespace taskcell::live
