// Anthropic messages, as Claude Code speaks it.
#include <nlohmann/json.hpp>

#include "gateway/egress/judge_rules.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kTopFields[] = {
    "model",          "messages",      "system",        "max_tokens",   "metadata",
    "stop_sequences", "stream",        "temperature",   "top_k",        "top_p",
    "tools",          "tool_choice",   "thinking",      "service_tier", "context_management",
    "output_config",  "output_format", "cache_control",
};
constexpr std::string_view kToolFields[] = {
    "name", "description", "input_schema",   "cache_control",
    "type", "strict",      "input_examples", "eager_input_streaming",
};
constexpr std::string_view kMessageFields[] = {"role", "content"};
constexpr std::string_view kBlockTypes[] = {
    "text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking",
};
constexpr std::string_view kSourceFields[] = {"type", "media_type", "data", "content"};
constexpr std::string_view kSourceTypes[] = {"base64", "text", "content"};
constexpr std::string_view kChoiceTypes[] = {"auto", "any", "tool", "none"};

Verdict JudgeBlock(const Json& block);

Verdict JudgeSource(const Json& source) {
  REFUSE_IF(CheckObject(source, "source"));
  std::string_view type = StringAt(source, "type");
  if (!Contains(kSourceTypes, type))
    return Denied("egress_url", Text("a source of type \"", Shown(type), "\": only inline data"));
  REFUSE_IF(CheckKeys(source, kSourceFields, "source"));
  auto content = source.find("content");
  return content == source.end() ? std::nullopt : CheckContent(*content, "source", JudgeBlock);
}

Verdict JudgeBlock(const Json& block) {
  REFUSE_IF(CheckObject(block, "content"));
  std::string_view type = StringAt(block, "type");
  if (!Contains(kBlockTypes, type)) {
    return Denied("egress_server_tool",
                  Text("content of type \"", Shown(type), "\": only client-side tools exist here"));
  }
  auto source = block.find("source");
  if (source != block.end()) REFUSE_IF(JudgeSource(*source));
  if (source == block.end() && (type == "image" || type == "document"))
    return Denied("egress_url", Text("a ", type, " without inline data"));
  REFUSE_IF(CheckAbsent(block, "file_id", "egress_stored", "content"));
  auto content = block.find("content");
  return content == block.end() ? std::nullopt : CheckContent(*content, "content", JudgeBlock);
}

Verdict JudgeMessage(const Json& message) {
  REFUSE_IF(CheckKeys(message, kMessageFields, "messages"));
  auto content = message.find("content");
  return content == message.end() ? std::nullopt : CheckContent(*content, "content", JudgeBlock);
}

Verdict JudgeTool(const Json& tool) {
  REFUSE_IF(CheckObject(tool, "tools"));
  auto type = tool.find("type");
  if (type != tool.end() && *type != "custom") {
    return Denied("egress_server_tool", Text("the tool type \"", Shown(StringAt(tool, "type")),
                                             "\": only tools that run in the sandbox itself"));
  }
  return CheckKeys(tool, kToolFields, "tools");
}

Verdict JudgeChoice(const Json& choice) {
  REFUSE_IF(CheckObject(choice, "tool_choice"));
  if (Contains(kChoiceTypes, StringAt(choice, "type"))) return std::nullopt;
  return Denied("egress_server_tool", "this tool_choice");
}

}  // namespace

Verdict JudgeMessages(const Json& body, std::vector<std::string>* tools) {
  REFUSE_IF(CheckKeys(body, kTopFields, "the request"));
  REFUSE_IF(CheckTools(body, JudgeTool, tools));
  if (auto choice = body.find("tool_choice"); choice != body.end()) REFUSE_IF(JudgeChoice(*choice));
  if (auto system = body.find("system"); system != body.end())
    REFUSE_IF(CheckContent(*system, "system", JudgeBlock));
  auto messages = body.find("messages");
  return messages == body.end() ? std::nullopt : CheckEach(*messages, "messages", JudgeMessage);
}

}  // namespace taskcell::gateway
