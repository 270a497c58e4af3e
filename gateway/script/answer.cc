#include "gateway/script/script.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {

std::string FailureText(const ScriptAnswer& answer) {
  return Text("Program exited with code ", answer.exit_code, "\n--- stdout ---\n", answer.out,
              "\n--- stderr ---\n", answer.err);
}

std::string ScriptAnswerJson(const ScriptAnswer& answer) {
  JsonText json;
  json.Open('{').Key("code").String(answer.code).Key("message").String(answer.message);
  json.Key("stdout").String(answer.out).Key("stderr").String(answer.err);
  json.Key("exit_code").Number(answer.exit_code);
  json.Key("tool_calls_count").Number(0);  // the reference's, where it is always 0 as well
  json.Key("execution_ms").Unsigned(answer.execution_ms);
  json.Key("truncated").Bool(answer.truncated).Key("timed_out").Bool(answer.timed_out);
  json.Key("ran_on_host").Bool(answer.ran_on_host).Key("cell");
  if (answer.engine.empty()) {
    json.Null();
  } else {
    json.Open('{').Key("engine").String(answer.engine).Key("verified").Bool(answer.verified);
    json.Key("uid_separation").String(answer.uid_separation).Close('}');
  }
  json.Key("warnings").Open('[');
  for (const std::string& warning : answer.warnings) json.String(warning);
  json.Close(']').Close('}');
  return json.text();
}

int ScriptExitStatus(const ScriptAnswer& answer) {
  constexpr int kNotRun = 125;
  constexpr int kStopped = 130;
  if (answer.ok()) return answer.exit_code;
  return answer.code == "stopped" ? kStopped : kNotRun;
}

}  // namespace taskcell::gateway
