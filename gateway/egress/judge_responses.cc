// OpenAI responses, as Codex speaks it.
#include <nlohmann/json.hpp>

#include "gateway/egress/judge_rules.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kTopFields[] = {
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "store",
    "stream",
    "stream_options",
    "include",
    "prompt_cache_key",
    "prompt_cache_retention",
    "text",
    "service_tier",
    "temperature",
    "top_p",
    "top_logprobs",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "truncation",
    "client_metadata",
    "safety_identifier",
    "user",
};
constexpr std::string_view kFunctionFields[] = {"type", "name", "description", "parameters",
                                                "strict"};
constexpr std::string_view kCustomFields[] = {"type", "name", "description", "format"};
constexpr std::string_view kLocalShellFields[] = {"type"};
constexpr std::string_view kNamespaceFields[] = {"type", "name", "description", "tools"};
// Codex offers its tools so, as the first item, to the models of its code mode.
constexpr std::string_view kAdditionalTools = "additional_tools";
constexpr std::string_view kAdditionalToolsFields[] = {"type", "id", "role", "tools"};
constexpr std::string_view kItemTypes[] = {
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "reasoning",
    kAdditionalTools,
};
// What an item of each type holds of its own; the one that holds nothing is looked up by its id.
struct Substance {
  std::string_view type;
  const char* member;
};
constexpr Substance kSubstances[] = {
    {"message", "content"},
    {"function_call", "arguments"},
    {"function_call_output", "output"},
    {"custom_tool_call", "input"},
    {"custom_tool_call_output", "output"},
    {"local_shell_call", "action"},
    {"local_shell_call_output", "output"},
    {"reasoning", "encrypted_content"},
    {kAdditionalTools, "tools"},
};
constexpr std::string_view kPartTypes[] = {
    "input_text",   "output_text",    "text",        "refusal",
    "summary_text", "reasoning_text", "input_image", "input_file",
};
constexpr std::string_view kChoiceWords[] = {"auto", "none", "required"};
constexpr std::string_view kChoiceTypes[] = {"function", "custom", "local_shell"};
constexpr std::string_view kIncludes[] = {"reasoning.encrypted_content"};

Verdict JudgePart(const Json& part) {
  REFUSE_IF(CheckObject(part, "content"));
  std::string_view type = StringAt(part, "type");
  if (!Contains(kPartTypes, type))
    return Denied("egress_server_tool", Text("content of type \"", Shown(type), "\""));
  REFUSE_IF(CheckAbsent(part, "file_id", "egress_stored", "content"));
  REFUSE_IF(CheckAbsent(part, "file_url", "egress_url", "content"));
  if (type == "input_image" && !part.contains("image_url"))
    return Denied("egress_url", "an image without inline data");
  if (type == "input_file" && !part.contains("file_data"))
    return Denied("egress_url", "a file without inline data");
  REFUSE_IF(CheckInline(part, "file_data", "content"));
  return CheckInline(part, "image_url", "content");
}

bool HoldsSomething(const Json& item, const char* member) {
  auto found = item.find(member);
  if (found == item.end() || found->is_null()) return false;
  if (!found->is_string()) return !found->empty();
  // A call may have no input and give no output, but sealed reasoning is never empty.
  return std::string_view(member) != "encrypted_content" ||
         !found->get_ref<const std::string&>().empty();
}

// An item with an id has to hold what it is, so that there is nothing to look up. (Codex, which
// stores nothing, sends no ids.)
Verdict CheckSubstance(const Json& item, std::string_view type) {
  auto id = item.find("id");
  if (id == item.end() || id->is_null()) return std::nullopt;
  for (const Substance& substance : kSubstances) {
    if (substance.type == type && HoldsSomething(item, substance.member)) return std::nullopt;
  }
  return Denied("egress_stored", Text("an item of type \"", Shown(type),
                                      "\" with an id and nothing else: it would be looked up"));
}

Verdict JudgeClientTool(const Json& tool) {
  REFUSE_IF(CheckObject(tool, "tools"));
  std::string_view type = StringAt(tool, "type");
  if (type == "function") return CheckKeys(tool, kFunctionFields, "tools");
  if (type == "custom") return CheckKeys(tool, kCustomFields, "tools");
  if (type == "local_shell") return CheckKeys(tool, kLocalShellFields, "tools");
  return Denied("egress_server_tool", Text("the tool type \"", Shown(type),
                                           "\": only tools that run in the sandbox itself"));
}

// A tool, or tools under one name.
Verdict JudgeTool(const Json& tool) {
  REFUSE_IF(CheckObject(tool, "tools"));
  if (StringAt(tool, "type") != "namespace") return JudgeClientTool(tool);
  REFUSE_IF(CheckKeys(tool, kNamespaceFields, "tools"));
  return CheckEach(tool.value("tools", Json()), "tools", JudgeClientTool);
}

Verdict JudgeAdditionalTools(const Json& item) {
  REFUSE_IF(CheckKeys(item, kAdditionalToolsFields, "input"));
  return CheckEach(item.value("tools", Json()), "tools", JudgeTool);
}

Verdict JudgeItem(const Json& item) {
  REFUSE_IF(CheckObject(item, "input"));
  std::string_view type = StringAt(item, "type");
  bool is_plain_message = !item.contains("type") && item.contains("role");
  if (type == "item_reference") return Denied("egress_stored", "a reference to a stored item");
  if (!is_plain_message && !Contains(kItemTypes, type)) {
    return Denied("egress_server_tool",
                  Text("an item of type \"", Shown(type), "\": only client-side tools exist here"));
  }
  REFUSE_IF(CheckSubstance(item, is_plain_message ? "message" : type));
  if (type == kAdditionalTools) return JudgeAdditionalTools(item);
  REFUSE_IF(CheckAbsent(item, "tools", "egress_server_tool", "input"));
  for (const char* key : {"content", "output", "summary"}) {
    if (auto found = item.find(key); found != item.end())
      REFUSE_IF(CheckContent(*found, key, JudgePart));
  }
  return std::nullopt;
}

Verdict JudgeChoice(const Json& choice) {
  bool is_word = choice.is_string() && Contains(kChoiceWords, choice.get_ref<const std::string&>());
  if (is_word) return std::nullopt;
  if (choice.is_object() && Contains(kChoiceTypes, StringAt(choice, "type")))
    return CheckObject(choice, "tool_choice");
  return Denied("egress_server_tool", "this tool_choice");
}

Verdict JudgeInclude(const Json& include) {
  if (include.is_string() && Contains(kIncludes, include.get_ref<const std::string&>()))
    return std::nullopt;
  return Denied("egress_field", "this include");
}

// A response is stored unless the request says otherwise, so it has to.
Verdict JudgeStore(const Json& body) {
  auto store = body.find("store");
  if (store != body.end() && *store == false) return std::nullopt;
  return Denied("egress_stored", "a stored response: set \"store\": false");
}

}  // namespace

Verdict JudgeResponses(const Json& body, std::vector<std::string>* tools) {
  REFUSE_IF(CheckKeys(body, kTopFields, "the request"));
  REFUSE_IF(JudgeStore(body));
  REFUSE_IF(CheckTools(body, JudgeTool, tools));
  if (auto choice = body.find("tool_choice"); choice != body.end()) REFUSE_IF(JudgeChoice(*choice));
  if (auto include = body.find("include"); include != body.end())
    REFUSE_IF(CheckEach(*include, "include", JudgeInclude));
  auto input = body.find("input");
  if (input == body.end()) return std::nullopt;
  REFUSE_IF(CheckContent(*input, "input", JudgeItem));
  if (!input->is_array()) return std::nullopt;
  for (const Json& item : *input) {
    if (StringAt(item, "type") == kAdditionalTools) REFUSE_IF(CheckTools(item, JudgeTool, tools));
  }
  return std::nullopt;
}

}  // namespace taskcell::gateway
