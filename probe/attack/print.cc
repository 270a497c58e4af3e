#include "probe/attack/print.h"

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::attack {
namespace {

std::string_view Words(Verdict verdict) {
  switch (verdict) {
    case Verdict::kContained:
      return "contained";
    case Verdict::kEscaped:
      return "ESCAPED";
    case Verdict::kNotProvable:
      break;
  }
  return "not provable here";
}

std::string Summary(const Report& report) {
  std::size_t contained = Count(report, Verdict::kContained);
  std::size_t escaped = Count(report, Verdict::kEscaped);
  std::size_t open = Count(report, Verdict::kNotProvable);
  std::string text;
  if (escaped > 0) {
    text =
        Text(escaped, escaped == 1 ? " attack" : " attacks", " escaped, ", contained, " contained");
  } else if (report.rows.empty()) {
    text = "there was no cell to attack";
  } else {
    text = Text(contained, contained == 1 ? " attack" : " attacks", " contained, none escaped");
  }
  if (open > 0) text += Text(", ", open, " not provable here");
  return text + Text(" (", Printable(report.engine), ")\n");
}

std::string TableOf(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> lines = {
      {"ATTACK", "OUTSIDE", "IN THE CELL", "VERDICT", "TRIED TO"}};
  for (const Row& row : rows) {
    lines.push_back({std::string(row.payload->name), NameOf(row.outside.result),
                     NameOf(row.inside.result), std::string(Words(row.verdict)),
                     std::string(row.payload->tries)});
  }
  return probe::Columns(lines);
}

void PutAttempted(JsonText& json, const char* key, const Attempted& attempted) {
  json.Key(key).Open('{').Key("result").Number(attempted.result);
  json.Key("name").String(NameOf(attempted.result));
  json.Key("detail").String(attempted.detail).Close('}');
}

void PutRow(JsonText& json, const Row& row) {
  json.Open('{').Key("attack").String(row.payload->name).Key("topic").String(row.payload->topic);
  json.Key("tried").String(row.payload->tries);
  json.Key("control").String(Name(row.payload->control));
  PutAttempted(json, "outside", row.outside);
  PutAttempted(json, "inside", row.inside);
  probe::PutStrings(json, "changes", row.changes);
  json.Key("verdict").String(Name(row.verdict)).Key("why").String(row.why).Close('}');
}

}  // namespace

std::string ReportText(const Report& report, bool quiet) {
  std::string text = Summary(report);
  if (quiet) return text;
  if (!report.rows.empty()) text += Text('\n', TableOf(report.rows));
  std::string notes;
  for (const Row& row : report.rows)
    if (!row.why.empty()) notes += Text(row.payload->name, ": ", Printable(row.why), '\n');
  return text + probe::EndText(report, std::move(notes));
}

std::string ReportJson(const Report& report) {
  JsonText json;
  json.Open('{').Key("engine").String(report.engine);
  json.Key("overall").String(Name(Overall(report)));
  json.Key("attacks").Open('[');
  for (const Row& row : report.rows) PutRow(json, row);
  json.Close(']');
  probe::PutEnd(json, report);
  json.Close('}');
  return json.text() + "\n";
}

std::string PayloadList() {
  std::vector<std::vector<std::string>> lines = {{"ATTACK", "TOPIC", "CONTROL", "TRIES TO"}};
  for (const Payload& payload : AllPayloads()) {
    lines.push_back({std::string(payload.name), std::string(payload.topic),
                     std::string(Name(payload.control)), std::string(payload.tries)});
  }
  return probe::Columns(lines);
}

}  // namespace taskcell::attack
