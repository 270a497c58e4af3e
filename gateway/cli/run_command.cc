#include "gateway/cli/run_command.h"

#include <unistd.h>

#include <exception>
#include <functional>
#include <optional>

#include "gateway/cli/answer_output.h"
#include "gateway/cli/gateway_client.h"
#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/cli/read_prompt.h"
#include "gateway/config/home.h"
#include "gateway/config/team_gate.h"
#include "gateway/task/host_surroundings.h"
#include "gateway/task/prompt.h"
#include "gateway/task/task.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/termination.h"

namespace taskcell::gateway {
namespace {

using Report = std::function<void(std::string_view)>;

// Progress is for somebody who looks on.
Report TerminalReport() {
  if (::isatty(STDERR_FILENO) != 1) return {};
  return [](std::string_view line) { Tell(line); };
}

// The gateway names the receipt; it lies in the home that both look into.
void ReadReceipt(const Home& home, TaskAnswer& answer) {
  constexpr std::size_t kMaxReceiptBytes = 16U << 20U;
  const std::string below = home.path + "/";
  if (!answer.receipt_path.starts_with(below)) return;
  Result<std::string> receipt =
      sys::ReadFile(home.fd.get(), answer.receipt_path.substr(below.size()), kMaxReceiptBytes);
  if (receipt.ok()) {
    answer.receipt_json = Trim(receipt.value());
  } else {
    answer.warnings.push_back(Text("the receipt: ", receipt.error().text));
  }
}

Result<TaskAnswer> FollowTask(GatewayClient& gateway, const Home& home, const std::string& id,
                              int cancel_fd) {
  const Report report = TerminalReport();
  TaskAnswer answer = TRY(gateway.Follow(id, cancel_fd, [&](std::string_view line) {
    if (report) report(line);
  }));
  ReadReceipt(home, answer);
  return answer;
}

// nullopt: nobody serves the home, or it cannot be used, which running the task tells.
Result<std::optional<TaskAnswer>> RunByGateway(const std::string& home_path,
                                               const TaskRequest& request, int cancel_fd) {
  Result<Home> home = OpenHome(home_path);
  if (!home.ok()) return std::optional<TaskAnswer>();
  std::optional<GatewayClient> gateway = TRY(GatewayClient::Find(home.value()));
  if (!gateway.has_value()) return std::optional<TaskAnswer>();
  TRY(CheckPrompt(request.prompt));
  GatewayClient::Submitted submitted = TRY(gateway->Submit(request));
  if (submitted.answer.has_value()) return std::move(submitted.answer);
  return std::optional<TaskAnswer>(
      TRY(FollowTask(*gateway, home.value(), submitted.id, cancel_fd)));
}

// All but the prompt.
Result<TaskRequest> RequestOf(const RunOptions& options) {
  TaskRequest request;
  request.agent = options.agent;
  request.team_role = options.role;
  request.require_cell = options.require_cell;
  request.inputs = options.inputs;
  if (!options.path.empty()) request.kind = TRY(ParseTaskKind(options.path));
  TRY(CheckTeamRole(options.role));
  return request;
}

// `home` is told where it is known: what is wrong with a configuration is wrong with one home's.
Result<TaskAnswer> Run(const RunOptions& options, std::string& home_path) {
  TRY(sys::SetNotDumpable());
  TaskRequest request = TRY(RequestOf(options));
  // Before signals are caught: there is nothing yet that one would have to undo.
  request.prompt = TRY(ReadPrompt(options.prompt));
  UniqueFd cancel = TRY(sys::CatchTermination());
  Result<std::string> home = ChooseHome(options.home, ProcessEnvironment());
  if (!home.ok()) return std::move(home).error().Coded("workspace_failed");
  home_path = home.value();
  // A path means what it means to this process, now: it is not handed on.
  if (request.inputs.empty()) {
    std::optional<TaskAnswer> answer = TRY(RunByGateway(home_path, request, cancel.get()));
    if (answer.has_value()) return *std::move(answer);
  }
  std::unique_ptr<HostSurroundings> host = TRY(HostSurroundings::Make());
  Surroundings surroundings = host->For(cancel.get());
  surroundings.report_progress = TerminalReport();
  request.home = std::move(home).value();
  return RunTask(request, surroundings);
}

// Libraries throw where memory or threads run out.
template <typename Body>
auto Catch(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return Error(Kind::kSystem, Text("this process ran out of something it needs (", error.what(),
                                     "): see its limits (ulimit -a) and those of its cgroup"));
  }
}

// With the answer where there is one at once, or it was waited for.
Result<GatewayClient::Submitted> Submit(const RunOptions& options) {
  TaskRequest request = TRY(RequestOf(options));
  request.prompt = TRY(ReadPrompt(options.prompt));
  TRY(CheckPrompt(request.prompt));
  Result<Home> home = OpenChosenHome(options.home, ProcessEnvironment());
  if (!home.ok()) return std::move(home).error().Coded("workspace_failed");
  GatewayClient gateway = TRY(GatewayClient::Need(home.value()));
  UniqueFd cancel;
  if (options.wait) cancel = TRY(sys::CatchTermination());
  GatewayClient::Submitted submitted = TRY(gateway.Submit(request));
  if (options.wait && !submitted.answer.has_value())
    submitted.answer = TRY(FollowTask(gateway, home.value(), submitted.id, cancel.get()));
  return submitted;
}

}  // namespace

int RunCommand(const RunOptions& options) {
  std::string home_path;
  Result<TaskAnswer> result = Catch([&] { return Run(options, home_path); });
  return PrintAnswer(result.ok() ? std::move(result).value() : AnswerFor(result.error()),
                     options.json, home_path);
}

int SubmitCommand(const RunOptions& options) {
  constexpr int kFailed = 1;
  Result<GatewayClient::Submitted> submitted = Catch([&] { return Submit(options); });
  if (!submitted.ok()) return PrintAnswer(AnswerFor(submitted.error()), options.json, options.home);
  if (submitted->answer.has_value())
    return PrintAnswer(*submitted->answer, options.json, options.home);
  JsonText json;
  json.Open('{').Key("task_id").String(submitted->id).Close('}');
  const bool printed = PrintOutput(Text(options.json ? json.text() : submitted->id, "\n"));
  return printed ? 0 : kFailed;
}

}  // namespace taskcell::gateway
