#include "gateway/script/mcp.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

using Json = nlohmann::json;

constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;

// Those in which nothing this server says differs. The newest goes to a client that asks for
// another.
constexpr std::array<std::string_view, 4> kVersions = {"2024-11-05", "2025-03-26", "2025-06-18",
                                                       "2025-11-25"};

constexpr std::string_view kTools =
    R"j({"tools":[{"name":"execute_program","description":)j"
    R"j("Execute a program in a locked-down cell without a network. )j"
    R"j(Only final stdout enters context.","inputSchema":{"type":"object","properties":{)j"
    R"j("code":{"type":"string","description":"Source code to execute"},)j"
    R"j("language":{"type":"string","description":)j"
    R"j("Language: 'python', 'bash', or 'javascript'"},)j"
    R"j("timeout_seconds":{"type":"integer","description":)j"
    R"j("Execution timeout in seconds (default: 30, max: 300)"}},)j"
    R"j("required":["code","language"]}}]})j";

std::string Respond(std::string_view id, std::string_view key, std::string_view json) {
  return Text(R"({"jsonrpc":"2.0","id":)", id, ",\"", key, "\":", json, "}");
}

McpStep Reply(std::string line) {
  McpStep step;
  step.reply = std::move(line);
  return step;
}

McpStep ProtocolError(std::string_view id, int code, std::string_view message) {
  JsonText json;
  json.Open('{').Key("code").Number(code).Key("message").String(message).Close('}');
  return Reply(Respond(id, "error", json.text()));
}

std::string ToolText(std::string_view text, bool is_error) {
  JsonText json;
  json.Open('{').Key("content").Open('[').Open('{').Key("type").String("text");
  json.Key("text").String(text).Close('}').Close(']').Key("isError").Bool(is_error).Close('}');
  return json.text();
}

// "": no id a request may have.
std::string IdOf(const Json& value) {
  const bool fits = value.is_string() || value.is_number_integer();
  return fits ? value.dump(-1, ' ', true, Json::error_handler_t::replace) : std::string();
}

std::string Initialized(const Json& params) {
  const std::string asked = params.value("protocolVersion", "");
  const bool known = std::find(kVersions.begin(), kVersions.end(), asked) != kVersions.end();
  JsonText json;
  json.Open('{').Key("protocolVersion").String(known ? asked : kVersions.back());
  json.Key("capabilities").Open('{').Key("tools").Open('{').Close('}').Close('}');
  json.Key("serverInfo").Open('{').Key("name").String("taskcell");
  json.Key("version").String(TASKCELL_VERSION).Close('}').Close('}');
  return json.text();
}

// Seconds as a number, or as the text of one: clients have seen both in this schema. Nothing: it is
// neither.
std::optional<uint64_t> SecondsOf(const Json& arguments) {
  auto found = arguments.find("timeout_seconds");
  if (found == arguments.end() || found->is_null()) return kDefaultScriptSeconds;
  if (found->is_number_unsigned()) return found->get<uint64_t>();
  if (found->is_string()) return ParseUnsigned(found->get<std::string>());
  return std::nullopt;
}

Result<ScriptRequest> ScriptOf(const Json& arguments, ScriptRequest request) {
  constexpr uint64_t kMillis = 1000;
  auto refuse = [](std::string text) { return Error(Kind::kUsage, std::move(text)); };
  for (const char* name : {"code", "language"}) {
    auto found = arguments.find(name);
    if (found == arguments.end() || !found->is_string())
      return refuse(Text("Missing required parameter: ", name));
  }
  request.code = arguments["code"].get<std::string>();
  request.language = TRY(ParseLanguage(arguments["language"].get<std::string>()));
  const std::optional<uint64_t> seconds = SecondsOf(arguments);
  if (!seconds.has_value() || *seconds == 0)
    return refuse(Text("timeout_seconds must be a number from 1 to ", kMaxScriptSeconds));
  request.timeout_ms = std::min(*seconds, kMaxScriptSeconds) * kMillis;
  return request;
}

McpStep Call(const std::string& id, const Json& params, const ScriptRequest& base) {
  const std::string name = params.value("name", "");
  if (name != kMcpTool)
    return ProtocolError(id, kInvalidParams, Text("Unknown tool: ", Printable(name.substr(0, 64))));
  const Json arguments = params.value("arguments", Json::object());
  if (!arguments.is_object()) return ProtocolError(id, kInvalidParams, "arguments is no object");
  Result<ScriptRequest> request = ScriptOf(arguments, base);
  if (!request.ok()) return Reply(McpToolError(id, request.error().text));
  McpStep step;
  step.script = std::move(request).value();
  step.id = id;
  return step;
}

McpStep Notified(const std::string& method, const Json& params) {
  McpStep step;
  if (method != "notifications/cancelled") return step;
  auto found = params.find("requestId");
  if (found == params.end()) return step;
  step.id = IdOf(*found);
  step.cancels = !step.id.empty();
  return step;
}

McpStep Read(const Json& message, const ScriptRequest& base) {
  if (!message.is_object()) return ProtocolError("null", kInvalidRequest, "no request");
  const std::string method = message.value("method", "");
  const Json params = message.value("params", Json::object());
  auto id_found = message.find("id");
  if (id_found == message.end()) return Notified(method, params);
  const std::string id = IdOf(*id_found);
  if (method.empty()) return {};  // an answer, and nothing was asked
  if (id.empty() || !params.is_object())
    return ProtocolError(id.empty() ? "null" : id, kInvalidRequest, "no request");
  if (method == "initialize") return Reply(Respond(id, "result", Initialized(params)));
  if (method == "ping") return Reply(Respond(id, "result", "{}"));
  if (method == "tools/list") return Reply(Respond(id, "result", kTools));
  if (method == "tools/call") return Call(id, params, base);
  return ProtocolError(id, kMethodNotFound,
                       Text("Method not found: ", Printable(method.substr(0, 64))));
}

}  // namespace

McpStep ReadMcpLine(std::string_view line, const ScriptRequest& base) {
  if (Trim(line).empty()) return {};
  if (line.size() > kMaxMcpLineBytes)
    return ProtocolError("null", kInvalidRequest, "the message is too long");
  try {
    return Read(Json::parse(line), base);
  } catch (const Json::parse_error&) {
    return ProtocolError("null", kParseError, "Parse error");
  } catch (const Json::exception&) {  // a member of another type than it has
    return ProtocolError("null", kInvalidRequest, "no request");
  }
}

std::string McpResult(std::string_view id, const ScriptAnswer& answer) {
  const bool succeeded = answer.ok() && answer.exit_code == 0;
  const std::string text = !answer.ok() ? answer.message
                           : succeeded  ? answer.out
                                        : FailureText(answer);
  return Respond(id, "result", ToolText(text, !succeeded));
}

std::string McpToolError(std::string_view id, std::string_view text) {
  return Respond(id, "result", ToolText(text, true));
}

}  // namespace taskcell::gateway
