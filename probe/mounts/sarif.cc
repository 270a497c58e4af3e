#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "probe/mounts/print.h"

namespace taskcell::probe::audit {
namespace {

std::string_view LevelOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
    case Severity::kUnknown:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "none";
}

// RFC 3986: every byte that is not unreserved or a slash as %XX, so that any name can stand there.
std::string UriOf(std::string_view path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri;
  for (char each : path) {
    if (kPlain.find(each) != kPlain.npos) {
      uri += each;
      continue;
    }
    auto byte = static_cast<unsigned char>(each);
    uri += '%';
    uri += kHex[byte >> 4U];
    uri += kHex[byte & 15U];
  }
  return uri;
}

void AddText(JsonText& json, std::string_view key, std::string_view text) {
  json.Key(key).Open('{').Key("text").String(text).Close('}');
}

void AddRules(JsonText& json, Policy policy) {
  json.Key("rules").Open('[');
  for (std::size_t i = 0; i < kCodes; ++i) {
    const auto code = static_cast<Code>(i);
    const CodeText& text = TextOf(code);
    json.Open('{').Key("id").String(text.name);
    AddText(json, "shortDescription", text.title);
    AddText(json, "fullDescription", text.gain);
    AddText(json, "help", text.fix);
    json.Key("defaultConfiguration").Open('{').Key("level");
    json.String(LevelOf(SeverityOf(code, policy))).Close('}').Close('}');
  }
  json.Close(']');
}

void AddResult(JsonText& json, const Report& report, const Finding& finding) {
  bool absolute = finding.path.starts_with('/');
  std::string path = absolute              ? finding.path
                     : finding.path == "." ? report.resolved
                                           : Text(report.resolved, "/", finding.path);
  json.Open('{').Key("ruleId").String(TextOf(finding.code).name).Key("ruleIndex");
  json.Unsigned(static_cast<uint64_t>(finding.code)).Key("level");
  json.String(LevelOf(finding.severity));
  AddText(json, "message",
          Text(Printable(finding.path), ": ", TextOf(finding.code).title, ": ", finding.detail));
  json.Key("locations").Open('[').Open('{').Key("physicalLocation").Open('{');
  json.Key("artifactLocation").Open('{').Key("uri").String("file://" + UriOf(path));
  json.Close('}').Close('}').Close('}').Close(']').Close('}');
}

void AddNotification(JsonText& json, std::string_view level, std::string_view text) {
  json.Open('{').Key("level").String(level);
  AddText(json, "message", text);
  json.Close('}');
}

// Why nothing of the directory could be looked at, or how much of it is not among the results.
void AddNotifications(JsonText& json, const Report& report) {
  if (report.reason.empty() && report.left_out == 0) return;
  const std::string directory = Printable(report.directory);
  json.Key("toolExecutionNotifications").Open('[');
  if (!report.reason.empty()) AddNotification(json, "error", Text(directory, ": ", report.failure));
  if (report.left_out > 0) {
    AddNotification(json, "warning",
                    Text(directory, ": ", report.left_out, " more findings are not listed"));
  }
  json.Close(']');
}

void AddRun(JsonText& json, const Report& report) {
  json.Open('{').Key("tool").Open('{').Key("driver").Open('{');
  json.Key("name").String("taskcell-probe").Key("version").String(TASKCELL_VERSION);
  AddRules(json, report.policy);
  json.Close('}').Close('}').Key("invocations").Open('[').Open('{');
  json.Key("executionSuccessful").Bool(report.standing != Standing::kUnknown);
  AddNotifications(json, report);
  json.Close('}').Close(']').Key("results").Open('[');
  for (const Finding& finding : report.findings) AddResult(json, report, finding);
  for (const EntryReport& entry : report.entries) {
    for (const Finding& finding : entry.notes) AddResult(json, report, finding);
  }
  json.Close(']').Close('}');
}

}  // namespace

std::string SarifOf(const std::vector<Report>& reports) {
  JsonText json;
  json.Open('{').Key("$schema").String("https://json.schemastore.org/sarif-2.1.0.json");
  json.Key("version").String("2.1.0").Key("runs").Open('[');
  for (const Report& report : reports) AddRun(json, report);
  json.Close(']').Close('}');
  return json.text() + "\n";
}

}  // namespace taskcell::probe::audit
