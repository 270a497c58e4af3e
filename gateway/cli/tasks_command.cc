#include "gateway/cli/tasks_command.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <vector>

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/ledger/audit.h"
#include "gateway/ledger/ledger.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Complain(const Error& error) {
  Tell(Printable(error.text));
  return error.kind == Kind::kConfig ? kUsage : kFailed;
}

std::string TimeText(int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  constexpr std::size_t kToSeconds = 19;
  const std::string text = Rfc3339(MomentOf(std::chrono::milliseconds(unix_ms)));
  return text.substr(0, kToSeconds) + "Z";
}

std::string DurationText(const TaskRow& task) {
  if (task.started_ms == 0 || task.ended_ms == 0) return "-";
  constexpr int64_t kMillis = 1000;
  constexpr int64_t kTenths = 100;
  const int64_t lasted = task.ended_ms - task.started_ms;
  return Text(lasted / kMillis, ".", (lasted % kMillis) / kTenths, " s");
}

void PutTask(JsonText& json, const TaskRow& task) {
  json.Key("id").String(task.id).Key("agent").String(task.agent).Key("kind").String(task.kind);
  json.Key("state").String(TaskStateName(task.state)).Key("code").String(task.code);
  json.Key("message").String(task.message).Key("accepted_ms").Number(task.accepted_ms);
  json.Key("started_ms").Number(task.started_ms).Key("ended_ms").Number(task.ended_ms);
}

void PutRuns(JsonText& json, const std::vector<RunRow>& runs) {
  json.Key("runs").Open('[');
  for (const RunRow& run : runs) {
    json.Open('{').Key("id").String(run.id).Key("engine").String(run.engine);
    json.Key("account").String(run.account).Key("started_ms").Number(run.started_ms);
    json.Key("deadline_ms").Number(run.deadline_ms).Key("ended_ms").Number(run.ended_ms);
    json.Close('}');
  }
  json.Close(']');
}

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// One line of a table whose last column is as wide as it likes.
std::string Row(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i)
    line += i + 1 == cells.size() ? cells[i] : Padded(cells[i], widths[i]) + "  ";
  return line;
}

std::string TableOf(const std::vector<TaskRow>& tasks) {
  std::vector<std::vector<std::string>> rows = {
      {"TASK", "AGENT", "KIND", "STATE", "ACCEPTED", "LASTED", "CODE"}};
  for (const TaskRow& task : tasks)
    rows.push_back({task.id, Printable(task.agent), task.kind,
                    std::string(TaskStateName(task.state)), TimeText(task.accepted_ms),
                    DurationText(task), task.code.empty() ? "-" : task.code});
  std::vector<std::size_t> widths(rows[0].size());
  for (const std::vector<std::string>& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string table;
  for (const std::vector<std::string>& row : rows) table += Row(row, widths) + "\n";
  return table;
}

std::string TextOf(const TaskRow& task, const std::vector<RunRow>& runs, const Home& home) {
  std::string text =
      Text("task      ", task.id, "\nagent     ", Printable(task.agent), "\nkind      ", task.kind,
           "\nstate     ", TaskStateName(task.state), "\n");
  if (!task.code.empty()) text += Text("code      ", task.code, "\n");
  if (!task.message.empty()) text += Text("message   ", Printable(task.message), "\n");
  text +=
      Text("accepted  ", TimeText(task.accepted_ms), "\nended     ", TimeText(task.ended_ms), "\n");
  for (const RunRow& run : runs)
    text += Text("cell      ", run.id, " on ", Printable(run.engine), ", account ",
                 Printable(run.account), "; receipt ", Printable(home.path), "/sandbox/receipts/",
                 run.id, ".json\n");
  return text;
}

// The task whose id begins with `id`; kSystem where there is none or more than one.
Result<TaskRow> FindTask(Ledger& ledger, const std::string& id) {
  std::optional<TaskRow> found;
  for (TaskRow& task : TRY(ledger.Tasks(std::numeric_limits<int64_t>::max()))) {
    if (id.empty() || !task.id.starts_with(id)) continue;
    if (found.has_value())
      return Error(Kind::kSystem, Text("more than one task begins with ", Printable(id)));
    found = std::move(task);
  }
  if (found.has_value()) return *std::move(found);
  return Error(Kind::kSystem, Text("there is no task ", Printable(id),
                                   " in this home's ledger (taskcell ps --all lists them)"));
}

Result<std::optional<Ledger>> OpenLedger(const Home& home) {
  return Ledger::OpenExisting(home.fd.get(), home.path);
}

// What `ps` prints.
Result<std::string> Ps(const std::string& home_option, bool all, bool json) {
  constexpr int64_t kNewest = 20;
  Home home = TRY(OpenChosenHome(home_option, ProcessEnvironment()));
  std::optional<Ledger> ledger = TRY(OpenLedger(home));
  std::vector<TaskRow> tasks;
  if (ledger.has_value())
    tasks = TRY(ledger->Tasks(all ? std::numeric_limits<int64_t>::max() : kNewest));
  if (!json) return TableOf(tasks);
  JsonText text;
  text.Open('[');
  for (const TaskRow& task : tasks) {
    text.Open('{');
    PutTask(text, task);
    text.Close('}');
  }
  text.Close(']');
  return text.text() + "\n";
}

// What `show` prints.
Result<std::string> Show(const std::string& home_option, const std::string& id, bool json) {
  Home home = TRY(OpenChosenHome(home_option, ProcessEnvironment()));
  std::optional<Ledger> ledger = TRY(OpenLedger(home));
  if (!ledger.has_value()) return Error(Kind::kSystem, "no task ever ran in this home");
  TaskRow task = TRY(FindTask(*ledger, id));
  std::vector<RunRow> runs = TRY(ledger->Runs(task.id));
  if (!json) return TextOf(task, runs, home);
  JsonText text;
  text.Open('{');
  PutTask(text, task);
  PutRuns(text, runs);
  text.Close('}');
  return text.text() + "\n";
}

int Print(const Result<std::string>& text) {
  if (!text.ok()) return Complain(text.error());
  return PrintOutput(text.value()) ? 0 : kFailed;
}

}  // namespace

int PsCommand(const std::string& home_option, bool all, bool json) {
  return Print(Ps(home_option, all, json));
}

int ShowCommand(const std::string& home_option, const std::string& id, bool json) {
  return Print(Show(home_option, id, json));
}

}  // namespace taskcell::gateway
