// Whatever a provider answers, the request that follows from it is one proper JSON object.
#include "gateway/runtimes/loop/chat.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  namespace loop = gateway::loop;
  std::string_view body = fuzz::TextOf(data, size);
  fuzz::Require(IsUtf8(loop::DescribeHttpError(500, body)));
  Result<loop::ChatAnswer> answer = loop::ParseChatAnswer(body);
  if (!answer.ok()) return 0;
  loop::Conversation conversation("m", "p");
  conversation.AddAnswer(answer.value());
  for (const loop::ToolCall& call : answer->calls) conversation.AddToolResult(call.id, body);
  Result<JsonValue> request = ParseJson(conversation.Request());
  fuzz::Require(request.ok() && request->is_object());
  return 0;
}
