#include "gateway/cli/sweep_command.h"

#include <ctime>

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/task/sweep_home.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

void PutIds(JsonText& json, std::string_view key, const std::vector<std::string>& ids) {
  json.Key(key).Open('[');
  for (const std::string& id : ids) json.String(id);
  json.Close(']');
}

std::string ListOf(const SweepReport& report, bool dry_run) {
  const char* removed = dry_run ? "would be removed" : "removed";
  std::string list;
  if (report.never_ran) list += "no cell was ever made in this home\n";
  for (const std::string& id : report.interrupted)
    list += Text("task ", id, dry_run ? ": was interrupted\n" : ": interrupted\n");
  for (const std::string& id : report.containers)
    list += Text("container ", id, ": ", removed, "\n");
  for (const std::string& id : report.directories)
    list += Text("run directory ", id, ": ", removed, "\n");
  for (const std::string& what : report.expired) list += Text(what, ": ", removed, "\n");
  return list;
}

// What went wrong, beside a list.
void Explain(const SweepReport& report) {
  for (const std::string& note : report.notes) Tell(Printable(note));
  for (const auto& [reason, count] : report.failures)
    Tell(Text("cleanup_failed: ", reason, " (", count, ")"));
}

}  // namespace

std::string SweepJson(const SweepReport& report) {
  JsonText json;
  json.Open('{').Key("never_ran").Bool(report.never_ran);
  PutIds(json, "interrupted", report.interrupted);
  PutIds(json, "containers", report.containers);
  PutIds(json, "directories", report.directories);
  PutIds(json, "expired", report.expired);
  PutIds(json, "notes", report.notes);
  json.Key("failures").Open('{');
  for (const auto& [reason, count] : report.failures) json.Key(reason).Unsigned(count);
  json.Close('}').Close('}');
  return json.text();
}

int SweepCommand(const std::string& home_option, bool dry_run, bool json) {
  constexpr int kFailed = 1;
  constexpr int kUsage = 2;
  Result<Home> home = OpenChosenHome(home_option, ProcessEnvironment());
  Result<SweepReport> report =
      home.ok() ? SweepHome(home.value(), {std::time(nullptr), dry_run}) : home.error();
  if (!report.ok()) {
    Tell(report.error().text);
    return report.error().kind == Kind::kConfig ? kUsage : kFailed;
  }
  if (!json) Explain(report.value());
  if (!PrintOutput(json ? SweepJson(report.value()) + "\n" : ListOf(report.value(), dry_run)))
    return kFailed;
  return report->failures.empty() ? 0 : kFailed;
}

}  // namespace taskcell::gateway
