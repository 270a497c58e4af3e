#include "gateway/cli/tasks_command.h"

#include <limits>
#include <optional>
#include <vector>

#include "gateway/cli/find_task.h"
#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/cli/table.h"
#include "gateway/ledger/ledger.h"
#include "gateway/ledger/task_json.h"
#include "gateway/task/answer_json.h"
#include "gateway/task/task_record.h"
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

std::string DurationText(const TaskRow& task) {
  if (task.started_ms == 0 || task.ended_ms == 0) return "-";
  constexpr int64_t kMillis = 1000;
  constexpr int64_t kTenths = 100;
  const int64_t lasted = task.ended_ms - task.started_ms;
  return Text(lasted / kMillis, ".", (lasted % kMillis) / kTenths, " s");
}

std::string TasksTable(const std::vector<TaskRow>& tasks) {
  std::vector<std::vector<std::string>> rows = {
      {"TASK", "AGENT", "KIND", "STATE", "ACCEPTED", "LASTED", "CODE"}};
  for (const TaskRow& task : tasks)
    rows.push_back({task.id, Printable(task.agent), task.kind,
                    std::string(TaskStateName(task.state)), TimeText(task.accepted_ms),
                    DurationText(task), task.code.empty() ? "-" : task.code});
  return TableOf(rows);
}

std::string TextOf(const TaskRow& task, const std::vector<RunRow>& runs, const std::string& answer,
                   const Home& home) {
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
  if (answer.empty()) return text;
  const Result<TaskAnswer> kept = ParseAnswer(answer);
  if (kept.ok() && kept.value().reply.has_value())
    text += Text("reply\n", *kept.value().reply, "\n");
  return text;
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
  if (!json) return TasksTable(tasks);
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
  const std::string answer = TRY(LaterAnswer(*ledger, task));
  if (!json) return TextOf(task, runs, answer, home);
  JsonText text;
  text.Open('{');
  PutTask(text, task);
  PutRuns(text, runs);
  text.Key("answer");
  if (answer.empty()) {
    text.Null();
  } else {
    text.Raw(answer);
  }
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
