#include "gateway/cli/answer_output.h"

#include "gateway/cli/output.h"
#include "gateway/task/answer_json.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// What a terminal or a log gets of an answer, beside the reply.
void Explain(const TaskAnswer& answer) {
  for (const std::string& warning : answer.warnings) Tell(Text("warning: ", Printable(warning)));
  if (!answer.export_path.empty()) Tell(Text("exported: ", Printable(answer.export_path)));
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

}  // namespace

int PrintAnswer(const TaskAnswer& answer, bool json, const std::string& home_path) {
  constexpr int kFailed = 1;
  Explain(answer);
  if (!answer.ok() && !home_path.empty()) Tell(Text("home: ", Printable(home_path)));
  if (!PrintOutput(OutputOf(answer, json))) return kFailed;
  return ExitStatus(answer.code);
}

}  // namespace taskcell::gateway
