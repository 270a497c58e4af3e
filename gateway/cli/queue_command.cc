#include "gateway/cli/queue_command.h"

#include <ctime>
#include <optional>

#include "gateway/cli/find_task.h"
#include "gateway/cli/gateway_client.h"
#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/cli/table.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/account_list.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Complain(const Error& error) {
  const std::string code = error.code.empty() ? "" : Text(error.code, ": ");
  Tell(Text(code, Printable(error.text)));
  if (!error.code.empty()) return ExitStatus(error.code);
  return error.kind == Kind::kConfig ? kUsage : kFailed;
}

Result<TaskRow> TaskOf(const Home& home, const std::string& id) {
  std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home.fd.get(), home.path));
  if (!ledger.has_value()) return Error(Kind::kSystem, "no task ever ran in this home");
  return FindTask(*ledger, id);
}

bool IsOver(TaskState state) {
  return state != TaskState::kAccepted && state != TaskState::kRunning;
}

// What `cancel` prints.
Result<std::string> Cancel(const std::string& home_option, const std::string& id, bool json) {
  const Home home = TRY(OpenChosenHome(home_option, ProcessEnvironment()));
  const TaskRow task = TRY(TaskOf(home, id));
  if (IsOver(task.state))
    return Error(Kind::kSystem,
                 Text("task ", task.id, " has ended already: ", TaskStateName(task.state)));
  GatewayClient gateway = TRY(GatewayClient::Need(home));
  const std::string was = TRY(gateway.Cancel(task.id));
  JsonText text;
  text.Open('{').Key("task_id").String(task.id).Key("was").String(was).Close('}');
  return Text(json ? text.text() : Text(task.id, " was ", was), "\n");
}

Result<std::string> LogOf(const Home& home, const TaskRow& task) {
  if (!IsOver(task.state)) return TRY(GatewayClient::Need(home)).Log(task.id);
  std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home.fd.get(), home.path));
  if (!ledger.has_value()) return std::string();
  return ledger->Log(task.id);
}

Result<std::string> Logs(const std::string& home_option, const std::string& id, bool json) {
  const Home home = TRY(OpenChosenHome(home_option, ProcessEnvironment()));
  const TaskRow task = TRY(TaskOf(home, id));
  const std::string log = TRY(LogOf(home, task));
  JsonText text;
  text.Open('{').Key("task_id").String(task.id).Key("log").String(log).Close('}');
  return json ? text.text() + "\n" : log;
}

std::string AccountsTable(const std::vector<ListedAccount>& accounts) {
  constexpr int64_t kMillis = 1000;
  std::vector<std::vector<std::string>> rows = {
      {"ACCOUNT", "PROVIDER", "TYPE", "PRIORITY", "STATE", "UNTIL", "WHY"}};
  for (const ListedAccount& account : accounts)
    rows.push_back({Printable(account.id), Printable(account.provider), account.type,
                    std::to_string(account.priority), std::string(Name(account.state)),
                    TimeText(account.until_s * kMillis),
                    account.why.empty() ? "-" : Printable(account.why)});
  return TableOf(rows);
}

Result<std::string> Accounts(const std::string& home_option, bool json) {
  const Environment environment = ProcessEnvironment();
  const Home home = TRY(OpenChosenHome(home_option, environment));
  const std::vector<ListedAccount> accounts =
      TRY(ListAccounts(home, environment, std::time(nullptr)));
  return json ? AccountsJson(accounts) + "\n" : AccountsTable(accounts);
}

int Print(const Result<std::string>& text) {
  if (!text.ok()) return Complain(text.error());
  return PrintOutput(text.value()) ? 0 : kFailed;
}

}  // namespace

int CancelCommand(const std::string& home_option, const std::string& id, bool json) {
  return Print(Cancel(home_option, id, json));
}

int LogsCommand(const std::string& home_option, const std::string& id, bool json) {
  return Print(Logs(home_option, id, json));
}

int AccountsCommand(const std::string& home_option, bool json) {
  return Print(Accounts(home_option, json));
}

}  // namespace taskcell::gateway
