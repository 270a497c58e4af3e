#include "gateway/runtimes/loop/tool_guard.h"

#include <algorithm>

#include "gateway/runtimes/tool_names.h"
#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"

namespace taskcell::gateway::loop {

std::string GuardAnswer(std::string_view call) {
  Result<JsonValue> read = ParseJson(call);
  const JsonValue* tool = read.ok() ? read->Find("toolCall") : nullptr;
  const std::string_view name = tool == nullptr ? "" : tool->String("name");
  const bool allowed = std::find(kAntigravityTools.begin(), kAntigravityTools.end(), name) !=
                       kAntigravityTools.end();
  JsonText answer;
  answer.Open('{').Key("decision").String(allowed ? "allow" : "deny");
  if (!allowed)
    answer.Key("reason").String(
        "this task has file and shell tools only; go on without any other tool");
  return answer.Close('}').text();
}

}  // namespace taskcell::gateway::loop
