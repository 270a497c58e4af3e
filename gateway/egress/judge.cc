#include "gateway/egress/judge.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gateway/egress/json_scan.h"
#include "gateway/egress/json_shorten.h"
#include "gateway/egress/judge_rules.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kModelBytes = 128;
constexpr std::size_t kNameBytes = 64;

// Fields that are refused with more than "unknown": what they would make the provider do.
struct KnownField {
  std::string_view key;
  std::string_view code;
  std::string_view why;
};
constexpr KnownField kKnownFields[] = {
    {"mcp_servers", "egress_server_tool", "remote MCP servers"},
    {"container", "egress_server_tool", "a container at the provider"},
    {"web_search_options", "egress_server_tool", "web search"},
    {"search_parameters", "egress_server_tool", "web search"},
    {"plugins", "egress_server_tool", "plugins at the provider"},
    {"allowed_callers", "egress_server_tool", "calls from code at the provider"},
    {"server_url", "egress_server_tool", "a remote server"},
    {"connector_id", "egress_server_tool", "a connector"},
    {"background", "egress_stored", "work that goes on in the background"},
    {"previous_response_id", "egress_stored", "a stored response"},
    {"conversation", "egress_stored", "a stored conversation"},
    {"prompt", "egress_stored", "a stored prompt"},
    {"models", "egress_model", "a choice of other models"},
    {"route", "egress_model", "a choice of other models"},
};

bool IsCanonicalKey(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Verdict JudgeModel(std::string_view model, const std::vector<std::string>& models) {
  if (std::find(models.begin(), models.end(), model) != models.end()) return std::nullopt;
  return Denied("egress_model", Text("the model \"", Shown(model), "\" is not the agent's model"));
}

Verdict JudgeObject(WireApi api, const Json& body, std::vector<std::string>* tools) {
  switch (api) {
    case WireApi::kAnthropicMessages:
      return JudgeMessages(body, tools);
    case WireApi::kOpenAiResponses:
      return JudgeResponses(body, tools);
    case WireApi::kOpenAiChat:
      return JudgeChat(body, tools);
  }
  return Denied("egress_field", "no rules for this API");
}

void AddToolNames(const Json& tools, std::vector<std::string>* names) {
  for (const Json& tool : tools) {
    if (auto below = tool.find("tools"); below != tool.end()) {
      AddToolNames(*below, names);
      continue;
    }
    std::string_view name = StringAt(tool, "name");
    if (name.empty() && tool.contains("function")) name = StringAt(tool["function"], "name");
    if (name.empty()) name = StringAt(tool, "type");
    names->push_back(Shown(name, kNameBytes));
  }
}

}  // namespace

Refusal Denied(std::string_view code, std::string_view message) {
  return Refusal{403, code, Text("not allowed from a sandboxed task: ", message)};
}

std::string Shown(std::string_view text, std::size_t limit) {
  return Printable(text).substr(0, limit);
}

std::string_view StringAt(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

bool Contains(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Verdict CheckObject(const Json& value, std::string_view where) {
  if (!value.is_object()) return Denied("egress_field", Text(where, " is not an object"));
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (!IsCanonicalKey(it.key()))
      return Denied("egress_field", Text("the key \"", Shown(it.key()), "\" in ", where));
  }
  return std::nullopt;
}

Verdict CheckKeys(const Json& value, Names allowed, std::string_view where) {
  REFUSE_IF(CheckObject(value, where));
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (Contains(allowed, it.key())) continue;
    for (const KnownField& field : kKnownFields) {
      if (field.key == it.key())
        return Denied(field.code, Text(field.why, " (", field.key, " in ", where, ")"));
    }
    return Denied("egress_field", Text("the unknown field \"", Shown(it.key()), "\" in ", where));
  }
  return std::nullopt;
}

Verdict CheckAbsent(const Json& object, const char* key, std::string_view code,
                    std::string_view where) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return Denied(code, Text(key, " in ", where));
}

Verdict CheckInline(const Json& object, const char* key, std::string_view where) {
  if (object.find(key) == object.end() || StringAt(object, key).starts_with("data:"))
    return std::nullopt;
  return Denied("egress_url", Text("a source in ", where, " that is not inline data (", key, ")"));
}

Verdict CheckEach(const Json& value, std::string_view where, Verdict (*rule)(const Json&)) {
  if (!value.is_array()) return Denied("egress_field", Text(where, " is not a list"));
  for (const Json& element : value) REFUSE_IF(rule(element));
  return std::nullopt;
}

Verdict CheckContent(const Json& value, std::string_view where, Verdict (*rule)(const Json&)) {
  if (value.is_string() || value.is_null()) return std::nullopt;
  return CheckEach(value, where, rule);
}

Verdict CheckTools(const Json& body, Verdict (*rule)(const Json&),
                   std::vector<std::string>* tools) {
  auto found = body.find("tools");
  if (found == body.end()) return std::nullopt;
  REFUSE_IF(CheckEach(*found, "tools", rule));
  AddToolNames(*found, tools);
  if (tools->size() > kEgressTools)
    return Denied("egress_field", Text("more than ", kEgressTools, " tools"));
  return std::nullopt;
}

Judgement JudgeBody(WireApi api, std::string_view body, const std::vector<std::string>& models) {
  Judgement judgement;
  const std::string looked_at = ShortenStrings(body, kEgressJudgedBytes);
  judgement.refusal = ScanJson(looked_at);
  if (judgement.refusal) return judgement;
  Json parsed = Json::parse(looked_at, nullptr, false);
  judgement.model = Shown(StringAt(parsed, "model"), kModelBytes);
  judgement.refusal = JudgeObject(api, parsed, &judgement.tools);
  if (!judgement.refusal) judgement.refusal = JudgeModel(StringAt(parsed, "model"), models);
  return judgement;
}

}  // namespace taskcell::gateway
