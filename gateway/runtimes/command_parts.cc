#include "gateway/runtimes/command_parts.h"

#include <algorithm>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMaxModelBytes = 256;

}  // namespace

Status CheckModelName(const std::string& model) {
  if (model.empty() || model.size() > kMaxModelBytes || model[0] == '-') {
    return Error(Kind::kConfig, "[model] preferred must be 1 to 256 bytes and not begin with `-`")
        .Coded("invalid_config");
  }
  for (char c : model) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7F' || c == '"' || c == '\\') {
      return Error(Kind::kConfig,
                   Text("[model] preferred has a byte no model name has: `", Printable(model), "`"))
          .Coded("invalid_config");
    }
  }
  return Ok();
}

std::string Joined(std::span<const std::string_view> names) {
  std::string joined;
  for (std::string_view name : names) joined += Text(joined.empty() ? "" : ",", name);
  return joined;
}

std::string ToolList(const std::vector<std::string>& names) {
  std::vector<std::string_view> listed;
  for (const std::string& name : names) {
    bool breaks = name.find_first_of(std::string_view(",\r\n\0", 4)) != std::string::npos;
    if (!name.empty() && name[0] != '-' && !breaks) listed.emplace_back(name);
  }
  std::sort(listed.begin(), listed.end());
  listed.erase(std::unique(listed.begin(), listed.end()), listed.end());
  return Joined(listed);
}

void AddCodexProvider(std::string_view base_url, std::vector<std::string>& argv) {
  for (std::string setting : {std::string("model_provider=\"taskcell\""),
                              std::string("model_providers.taskcell.name=\"taskcell\""),
                              Text("model_providers.taskcell.base_url=\"", base_url, "\""),
                              std::string("model_providers.taskcell.env_key=\"OPENAI_API_KEY\""),
                              std::string("model_providers.taskcell.wire_api=\"responses\""),
                              std::string("model_providers.taskcell.requires_openai_auth=false"),
                              std::string("model_providers.taskcell.supports_websockets=false")}) {
    argv.emplace_back("-c");
    argv.push_back(std::move(setting));
  }
}

std::vector<std::string> AntigravityCommand(std::string_view executable, std::string_view model) {
  return {std::string(executable),
          "--print",
          "",
          "--input-format",
          "stream-json",
          "--output-format",
          "stream-json",
          "--dangerously-skip-permissions",
          "--disable-slash-commands",
          "--model",
          std::string(model)};
}

std::string AntigravityInput(std::string_view prompt) {
  JsonText line;
  line.Open('{').Key("event").String("user").Key("message").Open('{');
  line.Key("content").String(prompt).Close('}').Close('}');
  return line.text() + "\n";
}

}  // namespace taskcell::gateway
