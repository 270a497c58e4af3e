#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "probe/mounts/print.h"

namespace taskcell::probe::audit {
namespace {

void AddFinding(JsonText& json, const Finding& finding) {
  const CodeText& text = TextOf(finding.code);
  json.Open('{').Key("code").String(text.name).Key("severity").String(Name(finding.severity));
  // Printable is without loss; a name that is not UTF-8 could not stand here as it is.
  json.Key("path").String(Printable(finding.path)).Key("detail").String(finding.detail);
  json.Key("gain").String(text.gain).Key("fix").String(text.fix).Close('}');
}

void AddFindings(JsonText& json, const std::vector<Finding>& findings) {
  json.Open('[');
  for (const Finding& finding : findings) AddFinding(json, finding);
  json.Close(']');
}

void AddOwner(JsonText& json, const Report& report) {
  json.Key("owner");
  if (report.owner)
    json.Unsigned(*report.owner);
  else
    json.Null();
}

void AddEntry(JsonText& json, const Report& report, const EntryReport& entry) {
  json.Open('{').Key("directory").String(Printable(report.directory));
  json.Key("entry").String(entry.name).Key("verdict").String(mounts::Name(entry.verdict));
  json.Key("reason").String(entry.reason).Key("note").String(entry.note);
  AddOwner(json, report);
  json.Key("notes");
  AddFindings(json, entry.notes);
  json.Close('}');
}

// What is amiss with the directory itself, which no entry can be mounted in spite of; and how much
// of what was found in it is not listed.
void AddDirectory(JsonText& json, const Report& report) {
  json.Open('{').Key("directory").String(Printable(report.directory));
  json.Key("entry").String(".").Key("verdict").String(Name(report.standing));
  json.Key("reason").String(report.reason).Key("note");
  json.String(report.reason.empty() ? "about the directory itself" : report.failure);
  AddOwner(json, report);
  json.Key("left_out").Unsigned(report.left_out).Key("notes");
  AddFindings(json, report.findings);
  json.Close('}');
}

void AddReport(JsonText& json, const Report& report) {
  json.Open('{').Key("directory").String(Printable(report.directory));
  json.Key("resolved").String(Printable(report.resolved));
  json.Key("policy").String(Name(report.policy)).Key("verdict").String(Name(report.standing));
  json.Key("reason").String(report.reason).Key("note").String(report.failure);
  AddOwner(json, report);
  json.Key("entries").Unsigned(report.looked_at).Key("left_out").Unsigned(report.left_out);
  json.Key("counts").Open('{');
  for (std::size_t i = 0; i < kCodes; ++i) {
    if (report.counts[i] > 0)
      json.Key(TextOf(static_cast<Code>(i)).name).Unsigned(report.counts[i]);
  }
  json.Close('}').Key("findings");
  AddFindings(json, report.findings);
  json.Close('}');
}

}  // namespace

std::string JsonOf(const std::vector<Report>& reports) {
  JsonText json;
  json.Open('[');
  for (const Report& report : reports) {
    if (report.policy != Policy::kAgent) {
      AddReport(json, report);
      continue;
    }
    for (const EntryReport& entry : report.entries) AddEntry(json, report, entry);
    if (!report.findings.empty() || !report.reason.empty() || report.left_out > 0)
      AddDirectory(json, report);
  }
  json.Close(']');
  return json.text() + "\n";
}

}  // namespace taskcell::probe::audit
