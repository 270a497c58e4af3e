#include "probe/live/print.h"

#include <algorithm>
#include <array>

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

using Line = std::array<std::string, 7>;

std::string Table(const std::vector<Row>& rows) {
  bool any_reported = std::any_of(rows.begin(), rows.end(),
                                  [](const Row& row) { return row.evidence.reported.has_value(); });
  std::vector<Line> lines = {
      {"LIMIT", "ASKED", "REPORTED", "SEEN", "TRIED", "HAPPENED", "VERDICT"}};
  for (const Row& row : rows) {
    std::string reported = Show(row.unit, row.evidence.reported);
    lines.push_back({row.limit, Show(row.unit, row.evidence.asked),
                     row.lie ? reported + " (untrue)" : reported, Show(row.unit, row.evidence.seen),
                     row.tried, row.happened, std::string(Words(row.verdict))});
  }
  std::array<std::size_t, 7> widths = {};
  for (const Line& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  constexpr std::size_t kReportedColumn = 2;
  std::string text;
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i == kReportedColumn && !any_reported) continue;
      text += line[i];
      if (i + 1 < line.size()) text.append(widths[i] - line[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
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

void PutStrings(JsonText& json, const char* key, const std::vector<std::string>& values) {
  json.Key(key).Open('[');
  for (const std::string& value : values) json.String(value);
  json.Close(']');
}

}  // namespace

std::string ReportText(const Report& report, bool quiet) {
  std::string text = Summary(report);
  if (quiet) return text;
  if (!report.rows.empty()) text += Text('\n', Table(report.rows));
  std::string notes;
  for (const Row& row : report.rows)
    if (!row.why.empty()) notes += Text(row.limit, ": ", row.why, '\n');
  for (const std::string& difference : report.differences)
    notes += Text("not as planned: ", difference, '\n');
  if (report.refusal) {
    notes += Text(Printable(report.refusal->text),
                  report.refusal->code.empty() ? "" : Text(" [", report.refusal->code, "]"), '\n');
  }
  for (const std::string& warning : report.warnings)
    notes += Text("warning: ", Printable(warning), '\n');
  if (!notes.empty()) text += Text('\n', notes);
  return text;
}

std::string ReportJson(const Report& report) {
  JsonText json;
  json.Open('{').Key("engine").String(report.engine);
  json.Key("overall").String(Name(Overall(report)));
  json.Key("limits").Open('[');
  for (const Row& row : report.rows) PutRow(json, row);
  json.Close(']');
  json.Key("refusal");
  if (report.refusal) {
    json.Open('{').Key("code").String(report.refusal->code);
    json.Key("text").String(report.refusal->text).Close('}');
  } else {
    json.Null();
  }
  PutStrings(json, "differences", report.differences);
  PutStrings(json, "warnings", report.warnings);
  json.Key("wall_ms").Unsigned(report.wall_ms).Close('}');
  return json.text() + "\n";
}

}  // namespace taskcell::live
