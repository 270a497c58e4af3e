// OpenAI chat completions, as the openai_compat loop speaks it.
#include <nlohmann/json.hpp>

#include "gateway/egress/judge_rules.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kTopFields[] = {
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "n",
    "stop",
    "seed",
    "response_format",
    "reasoning_effort",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "user",
};
constexpr std::string_view kToolFields[] = {"type", "function"};
constexpr std::string_view kFunctionFields[] = {"name", "description", "parameters", "strict"};
constexpr std::string_view kMessageFields[] = {
    "role", "content", "name", "tool_calls", "tool_call_id", "refusal", "reasoning_content",
};
constexpr std::string_view kPartTypes[] = {"text", "refusal", "image_url"};
constexpr std::string_view kImageFields[] = {"url", "detail"};
constexpr std::string_view kChoiceWords[] = {"auto", "none", "required"};

Verdict JudgePart(const Json& part) {
  REFUSE_IF(CheckObject(part, "content"));
  std::string_view type = StringAt(part, "type");
  if (type == "file" || type == "input_file") return Denied("egress_stored", "a file as content");
  if (!Contains(kPartTypes, type))
    return Denied("egress_field", Text("content of type \"", Shown(type), "\""));
  auto image = part.find("image_url");
  if (image == part.end()) {
    return type == "image_url" ? Verdict(Denied("egress_url", "an image without inline data"))
                               : std::nullopt;
  }
  REFUSE_IF(CheckKeys(*image, kImageFields, "image_url"));
  if (!image->contains("url")) return Denied("egress_url", "an image without inline data");
  return CheckInline(*image, "url", "image_url");
}

Verdict JudgeCall(const Json& call) {
  REFUSE_IF(CheckObject(call, "tool_calls"));
  if (StringAt(call, "type") == "function") return std::nullopt;
  return Denied("egress_server_tool", "a call of another tool than a function");
}

Verdict JudgeMessage(const Json& message) {
  REFUSE_IF(CheckKeys(message, kMessageFields, "messages"));
  if (auto calls = message.find("tool_calls"); calls != message.end())
    REFUSE_IF(CheckContent(*calls, "tool_calls", JudgeCall));
  auto content = message.find("content");
  return content == message.end() ? std::nullopt : CheckContent(*content, "content", JudgePart);
}

Verdict JudgeTool(const Json& tool) {
  REFUSE_IF(CheckObject(tool, "tools"));
  std::string_view type = StringAt(tool, "type");
  if (type != "function") {
    return Denied("egress_server_tool", Text("the tool type \"", Shown(type),
                                             "\": only tools that run in the sandbox itself"));
  }
  REFUSE_IF(CheckKeys(tool, kToolFields, "tools"));
  auto function = tool.find("function");
  if (function == tool.end()) return Denied("egress_field", "a tool without its function");
  return CheckKeys(*function, kFunctionFields, "tools");
}

Verdict JudgeChoice(const Json& choice) {
  bool is_word = choice.is_string() && Contains(kChoiceWords, choice.get_ref<const std::string&>());
  if (is_word) return std::nullopt;
  if (choice.is_object() && StringAt(choice, "type") == "function")
    return CheckObject(choice, "tool_choice");
  return Denied("egress_server_tool", "this tool_choice");
}

}  // namespace

Verdict JudgeChat(const Json& body, std::vector<std::string>* tools) {
  REFUSE_IF(CheckKeys(body, kTopFields, "the request"));
  REFUSE_IF(CheckTools(body, JudgeTool, tools));
  if (auto choice = body.find("tool_choice"); choice != body.end()) REFUSE_IF(JudgeChoice(*choice));
  auto messages = body.find("messages");
  return messages == body.end() ? std::nullopt : CheckEach(*messages, "messages", JudgeMessage);
}

}  // namespace taskcell::gateway
