#include "gateway/cli/run_command.h"

#include <unistd.h>

#include <cerrno>
#include <exception>

#include "gateway/cli/output.h"
#include "gateway/cli/surroundings.h"
#include "gateway/config/home.h"
#include "gateway/config/team_gate.h"
#include "gateway/task/prompt.h"
#include "gateway/task/task.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/termination.h"

namespace taskcell::gateway {
namespace {

// A prompt from standard input is read to one byte past the bound, so that its refusal needs no
// more memory than that.
Result<std::string> ReadPrompt(const std::string& prompt) {
  if (prompt != "-") return prompt;
  Result<std::string> text = sys::ReadAllWithin(STDIN_FILENO, kMaxPromptBytes, -1);
  if (!text.ok() && text.error().err == EISDIR)
    return Error(Kind::kUsage, "standard input is a directory; give the prompt as an argument")
        .Coded(kInvalidPrompt);
  if (text.ok() || text.error().err != EFBIG) return text;
  return Error(Kind::kUsage,
               Text("the prompt on standard input has more than ", kMaxPromptBytes, " bytes"))
      .Coded(kInvalidPrompt);
}

// `home` is told where it is known: what is wrong with a configuration is wrong with one home's.
Result<TaskAnswer> Run(const RunOptions& options, std::string& home_path) {
  TRY(sys::SetNotDumpable());
  TaskRequest request;
  request.agent = options.agent;
  request.team_role = options.role;
  request.require_cell = options.require_cell;
  if (!options.path.empty()) request.kind = TRY(ParseTaskKind(options.path));
  if (!options.role.empty() && !IsTeamRole(options.role))
    return Error(Kind::kUsage, Text("there is no team role `", Printable(options.role),
                                    "`; it is planner, executor, verifier or synthesiser"))
        .Coded("unknown_role");
  // Before signals are caught: there is nothing yet that one would have to undo.
  request.prompt = TRY(ReadPrompt(options.prompt));
  UniqueFd cancel = TRY(sys::CatchTermination());
  std::unique_ptr<HostSurroundings> host = TRY(HostSurroundings::Make(cancel.get()));
  if (::isatty(STDERR_FILENO) == 1) {
    host->get().report_progress = [](std::string_view line) { Tell(line); };
  }
  Result<std::string> home = ChooseHome(options.home, host->get().environment);
  if (!home.ok()) return std::move(home).error().Coded("workspace_failed");
  home_path = home.value();
  request.home = std::move(home).value();
  return RunTask(request, host->get());
}

// What a terminal or a log gets of an answer, beside the reply.
void Explain(const TaskAnswer& answer) {
  for (const std::string& warning : answer.warnings) Tell(Text("warning: ", Printable(warning)));
  if (answer.step_limit) Tell("the step limit was reached: this is the last text before it");
  if (answer.ok()) return;
  Tell(Text(answer.code, ": ", Printable(answer.message)));
  if (!answer.receipt_path.empty()) Tell(Text("receipt: ", Printable(answer.receipt_path)));
  if (!answer.detail.empty() && answer.message.find(answer.detail) == std::string::npos)
    Tell(Text("detail: ", Printable(answer.detail)));
}

// What goes to standard output: one JSON object, or the reply, or nothing.
std::string OutputOf(const TaskAnswer& answer, bool json) {
  if (json) return AnswerJson(answer) + "\n";
  if (!answer.reply.has_value()) return "";
  return answer.reply->ends_with('\n') ? *answer.reply : *answer.reply + "\n";
}

// Libraries throw where memory or threads run out.
Result<TaskAnswer> RunAndCatch(const RunOptions& options, std::string& home_path) {
  try {
    return Run(options, home_path);
  } catch (const std::exception& error) {
    return Error(Kind::kSystem, Text("this process ran out of something it needs (", error.what(),
                                     "): see its limits (ulimit -a) and those of its cgroup"));
  }
}

}  // namespace

std::string AnswerJson(const TaskAnswer& answer) {
  JsonText json;
  json.Open('{').Key("outcome").String(OutcomeWord(answer.code));
  json.Key("code").String(answer.code).Key("message").String(answer.message);
  json.Key("reply");
  if (answer.reply.has_value()) {
    json.String(*answer.reply);
  } else {
    json.Null();
  }
  json.Key("step_limit").Bool(answer.step_limit);
  json.Key("delegation_reply").String(DelegationReply(answer));
  json.Key("ran_on_host").Bool(answer.ran_on_host);
  json.Key("detail").String(answer.detail);
  json.Key("warnings").Open('[');
  for (const std::string& warning : answer.warnings) json.String(warning);
  json.Close(']')
      .Key("task_id")
      .String(answer.task_id)
      .Key("receipt_path")
      .String(answer.receipt_path)
      .Key("receipt");
  if (answer.receipt_json.empty()) {
    json.Null();
  } else {
    json.Raw(answer.receipt_json);
  }
  json.Close('}');
  return json.text();
}

int RunCommand(const RunOptions& options) {
  constexpr int kFailed = 1;
  std::string home_path;
  Result<TaskAnswer> result = RunAndCatch(options, home_path);
  const TaskAnswer answer = result.ok() ? std::move(result).value() : AnswerFor(result.error());
  Explain(answer);
  if (!answer.ok() && !home_path.empty()) Tell(Text("home: ", Printable(home_path)));
  if (!PrintOutput(OutputOf(answer, options.json))) return kFailed;
  return ExitStatus(answer.code);
}

}  // namespace taskcell::gateway
