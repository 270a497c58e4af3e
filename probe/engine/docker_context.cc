#include "probe/engine/docker_context.h"

#include <cerrno>
#include <nlohmann/json.hpp>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::probe {
namespace {

using Json = nlohmann::json;

// The one place that meets the JSON library: no exception leaves it.
Result<Json> ParseObject(std::string_view text, const char* what) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Error(Kind::kConfig, Text(what, " is not a JSON object"));
  return json;
}

std::string StringAt(const Json& json, const char* key) {
  auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}

}  // namespace

Result<std::string> ParseCurrentContext(std::string_view config_json) {
  return StringAt(TRY(ParseObject(config_json, "config.json")), "currentContext");
}

Result<DockerContext> ParseDockerContext(std::string_view meta_json) {
  Json json = TRY(ParseObject(meta_json, "meta.json"));
  DockerContext context;
  context.name = StringAt(json, "Name");
  auto endpoints = json.find("Endpoints");
  if (endpoints != json.end() && endpoints->is_object()) {
    auto docker = endpoints->find("docker");
    if (docker != endpoints->end() && docker->is_object()) context.host = StringAt(*docker, "Host");
  }
  return context;
}

Result<std::string> ReadCurrentContext(const std::string& directory) {
  std::string path = directory + "/config.json";
  auto text = sys::ReadFile(AT_FDCWD, path, kMaxDockerConfigBytes);
  if (!text.ok()) {
    if (text.error().err == ENOENT || text.error().err == ENOTDIR) return std::string();
    return std::move(text).error();
  }
  return ParseCurrentContext(text.value()).With(Text("'", Printable(path), "'"));
}

Result<std::string> ReadContextHost(const std::string& directory, const std::string& name) {
  std::string shown = Printable(name);
  std::string meta = directory + "/contexts/meta";
  auto opened = sys::Open(meta, O_RDONLY | O_DIRECTORY);
  if (!opened.ok() && opened.error().err != ENOENT) return std::move(opened).error();
  std::string host;
  int found = 0;
  if (opened.ok()) {
    auto entries = TRY(sys::ListDirectory(opened.value().get(), kMaxDockerContexts));
    // The client names these directories by a digest of the context's name; reading the name itself
    // asks less of us.
    for (const sys::DirectoryEntry& entry : entries) {
      auto text =
          sys::ReadFile(opened.value().get(), entry.name + "/meta.json", kMaxDockerConfigBytes);
      if (!text.ok()) continue;
      auto context = ParseDockerContext(text.value());
      if (!context.ok() || context.value().name != name) continue;
      host = context.value().host;
      ++found;
    }
  }
  if (found == 0) {
    return Error(Kind::kConfig, Text("there is no docker context '", shown, "' below '",
                                     Printable(meta), "'; create it or choose another one"));
  }
  if (found > 1) {
    return Error(Kind::kConfig,
                 Text("docker context '", shown, "' exists twice below '", Printable(meta), "'"));
  }
  if (host.empty())
    return Error(Kind::kConfig, Text("docker context '", shown, "' has no docker endpoint"));
  return host;
}

}  // namespace taskcell::probe
