#include "gateway/cli/run_command.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "gateway/cli/output.h"
#include "gateway/cli/surroundings.h"
#include "gateway/config/home.h"
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
  Result<std::string> text = sys::ReadAll(STDIN_FILENO, kMaxPromptBytes);
  if (text.ok() || text.error().err != EFBIG) return text;
  return Error(Kind::kUsage,
               Text("the prompt on standard input has more than ", kMaxPromptBytes, " bytes"))
      .Coded(kInvalidPrompt);
}

Result<TaskAnswer> Run(const RunOptions& options) {
  TRY(sys::SetNotDumpable());
  UniqueFd cancel = TRY(sys::CatchTermination());
  std::unique_ptr<HostSurroundings> host = TRY(HostSurroundings::Make(cancel.get()));
  if (::isatty(STDERR_FILENO) == 1) {
    host->get().report_progress = [](std::string_view line) {
      PutLine(STDERR_FILENO, Text("taskcell: ", line));
    };
  }
  TaskRequest request;
  request.agent = options.agent;
  request.prompt = TRY(ReadPrompt(options.prompt));
  Result<std::string> home = ChooseHome(options.home, host->get().environment);
  if (!home.ok()) return std::move(home).error().Coded("workspace_failed");
  request.home = std::move(home).value();
  return RunTask(request, host->get());
}

// What a terminal or a log gets of an answer, beside the reply.
void Explain(const TaskAnswer& answer) {
  for (const std::string& warning : answer.warnings)
    PutLine(STDERR_FILENO, Text("taskcell: warning: ", Printable(warning)));
  if (answer.step_limit)
    PutLine(STDERR_FILENO, "taskcell: the step limit was reached: this is the last text before it");
  if (answer.ok()) return;
  PutLine(STDERR_FILENO, Text("taskcell: ", answer.code, ": ", Printable(answer.message)));
  if (!answer.receipt_path.empty())
    PutLine(STDERR_FILENO, Text("taskcell: receipt: ", Printable(answer.receipt_path)));
  if (!answer.detail.empty() && answer.message.find(answer.detail) == std::string::npos)
    PutLine(STDERR_FILENO, Text("taskcell: detail: ", Printable(answer.detail)));
}

bool PrintReply(const TaskAnswer& answer) {
  std::string text = *answer.reply;
  if (!text.ends_with('\n')) text += '\n';
  Status written = sys::WriteAll(STDOUT_FILENO, text);
  if (!written.ok()) PutLine(STDERR_FILENO, Text("taskcell: the reply: ", written.error().text));
  return written.ok();
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
  json.Key("ran_on_host").Bool(false);
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
  Result<TaskAnswer> result = Run(options);
  const TaskAnswer answer = result.ok() ? std::move(result).value() : AnswerFor(result.error());
  Explain(answer);
  if (options.json) {
    PutLine(STDOUT_FILENO, AnswerJson(answer));
  } else if (answer.reply.has_value() && !PrintReply(answer)) {
    return kFailed;
  }
  return ExitStatus(answer.code);
}

}  // namespace taskcell::gateway
