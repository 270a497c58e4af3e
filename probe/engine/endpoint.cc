#include "probe/engine/endpoint.h"

#include <cstdlib>

#include "launcher/base/text.h"
#include "probe/engine/docker_context.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMaxSocketPathBytes = 107;  // sun_path without its NUL

Error Refuse(const std::string& source, std::string_view what) {
  return Error(Kind::kConfig, Text(source, ": ", what)).Coded("docker_unreachable");
}

std::string EnvironmentValue(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Result<std::string> ContextUrl(const EndpointSettings& settings, const std::string& name,
                               const std::string& source) {
  if (name == "default") return std::string("unix://") + kDefaultEngineSocket;
  auto host = ReadContextHost(settings.config_directory, name).With(source);
  if (!host.ok()) return std::move(host).error().Coded("docker_unreachable");
  return host;
}

}  // namespace

std::string Endpoint::Describe() const {
  std::string text = Text(Url(), " (from ", source);
  for (const std::string& loser : losers) text += Text("; ", loser, " is set too and not used");
  return text + ")";
}

EndpointSettings SettingsFromEnvironment(std::string configured) {
  EndpointSettings settings;
  settings.configured = std::move(configured);
  settings.docker_host = EnvironmentValue("DOCKER_HOST");
  settings.docker_context = EnvironmentValue("DOCKER_CONTEXT");
  settings.container_host = EnvironmentValue("CONTAINER_HOST");
  settings.config_directory = EnvironmentValue("DOCKER_CONFIG");
  std::string home = EnvironmentValue("HOME");
  if (settings.config_directory.empty() && !home.empty())
    settings.config_directory = home + "/.docker";
  return settings;
}

Result<std::string> ParseEngineUrl(const std::string& url, const std::string& source) {
  std::string shown = Printable(url);
  if (url.starts_with('/')) {
    return Refuse(source, Text("'", shown, "' is a bare path; write unix://", shown));
  }
  if (!url.starts_with("unix:")) {
    return Refuse(source,
                  Text("'", shown,
                       "' is not a unix socket; only an engine on this machine is spoken to, "
                       "written unix:///path/of.sock"));
  }
  std::string path = url.substr(5);
  if (path.starts_with("//")) path.erase(0, 2);
  if (!path.starts_with('/')) {
    return Refuse(source, Text("'", shown, "' names no absolute path; write unix:///path/of.sock"));
  }
  while (path.starts_with("//")) path.erase(0, 1);
  if (path.size() < 2 || path.size() > kMaxSocketPathBytes ||
      path.find('\0') != std::string::npos) {
    return Refuse(source, Text("the socket path of '", shown, "' must be 2 to ",
                               kMaxSocketPathBytes, " bytes long, it has ", path.size()));
  }
  return path;
}

Result<Endpoint> ChooseEndpoint(const EndpointSettings& settings) {
  struct Candidate {
    std::string source;
    std::string url;
    std::string context;
  };
  std::vector<Candidate> set;
  if (!settings.configured.empty()) {
    // A bare path is what a configuration key of this name is expected to hold.
    bool bare = settings.configured.starts_with('/');
    set.push_back({"config.toml [taskcell] engine_socket",
                   bare ? "unix://" + settings.configured : settings.configured, ""});
  }
  if (!settings.docker_host.empty()) set.push_back({"DOCKER_HOST", settings.docker_host, ""});
  if (!settings.docker_context.empty())
    set.push_back({"DOCKER_CONTEXT", "", settings.docker_context});
  if (!settings.container_host.empty())
    set.push_back({"CONTAINER_HOST", settings.container_host, ""});
  if (set.empty() && !settings.config_directory.empty()) {
    auto current = ReadCurrentContext(settings.config_directory);
    if (!current.ok()) return std::move(current).error().Coded("docker_unreachable");
    if (!current.value().empty()) {
      set.push_back({Text("the current context '", Printable(current.value()), "' of ",
                          Printable(settings.config_directory), "/config.json"),
                     "", current.value()});
    }
  }
  if (set.empty()) return Endpoint{kDefaultEngineSocket, "the default", {}};

  const Candidate& winner = set.front();
  std::string url = winner.url;
  if (url.empty()) url = TRY(ContextUrl(settings, winner.context, winner.source));
  Endpoint endpoint{TRY(ParseEngineUrl(url, winner.source)), winner.source, {}};
  for (std::size_t i = 1; i < set.size(); ++i) endpoint.losers.push_back(set[i].source);
  return endpoint;
}

}  // namespace taskcell::probe
