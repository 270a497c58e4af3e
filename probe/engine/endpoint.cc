#include "probe/engine/endpoint.h"

#include <unistd.h>

#include <cstdlib>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
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
  if (name == "default") return "unix://" + settings.docker_socket;
  auto host = ReadContextHost(settings.config_directory, name).With(source);
  if (!host.ok()) return std::move(host).error().Coded("docker_unreachable");
  return host;
}

// Where the Podman service of `uid` listens.
std::string PodmanSocket(uid_t uid) {
  if (uid == 0) return "/run/podman/podman.sock";
  std::string runtime = EnvironmentValue("XDG_RUNTIME_DIR");
  if (!runtime.starts_with('/')) runtime = Text("/run/user/", uid);
  return runtime + "/podman/podman.sock";
}

// Something that names an endpoint: by its URL, or as the name of a context.
struct Candidate {
  std::string source;
  std::string url;
  std::string context;
  std::string as_loser;  // "DOCKER_HOST is set too"
};

class Candidates {
 public:
  explicit Candidates(const EndpointSettings& settings) : settings_(settings) {}

  void Add(const char* variable, const std::string& url) {
    if (!url.empty()) found_.push_back({variable, url, "", Text(variable, " is set too")});
  }
  // A bare path is what a configuration key of this name is expected to hold.
  void AddConfigured() {
    const std::string& socket = settings_.configured;
    Add("config.toml [taskcell] engine_socket",
        socket.starts_with('/') ? "unix://" + socket : socket);
  }
  // The client's current context counts only where nothing above it is set.
  Status AddContext() {
    if (!settings_.docker_context.empty()) {
      found_.push_back(
          {"DOCKER_CONTEXT", "", settings_.docker_context, "DOCKER_CONTEXT is set too"});
      return Ok();
    }
    if (!found_.empty() || settings_.config_directory.empty()) return Ok();
    auto current = ReadCurrentContext(settings_.config_directory);
    if (!current.ok()) return std::move(current).error().Coded("docker_unreachable");
    if (!current.value().empty())
      found_.push_back({Text("the current context '", Printable(current.value()), "' of ",
                             Printable(settings_.config_directory), "/config.json"),
                        "", current.value(), ""});
    return Ok();
  }
  // A socket at its usual place; `always`: also when there is none.
  void AddSocket(const std::string& path, const char* source, bool always) {
    if (path.empty()) return;
    const bool there = sys::OpenAt2(AT_FDCWD, path, O_PATH, 0).ok();
    if (there || (always && found_.empty()))
      found_.push_back({source, "unix://" + path, "", Text(Printable(path), " is there too")});
  }

  Result<Endpoint> Choose() const {
    const Candidate& winner = found_.front();
    std::string url = winner.url;
    if (url.empty()) url = TRY(ContextUrl(settings_, winner.context, winner.source));
    Endpoint endpoint{TRY(ParseEngineUrl(url, winner.source)), winner.source, {}};
    for (std::size_t i = 1; i < found_.size(); ++i) endpoint.losers.push_back(found_[i].as_loser);
    return endpoint;
  }

 private:
  const EndpointSettings& settings_;
  std::vector<Candidate> found_;
};

}  // namespace

std::string Endpoint::Describe() const {
  std::string text = Text(Url(), " (from ", source);
  for (const std::string& loser : losers) text += Text("; ", loser, " and not used");
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
  settings.podman_socket = PodmanSocket(::geteuid());
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

Result<Endpoint> ChooseEndpoint(const EndpointSettings& settings, EngineFlavour flavour) {
  const bool docker = flavour != EngineFlavour::kPodman;
  const bool podman = flavour != EngineFlavour::kDocker;
  Candidates candidates(settings);
  candidates.AddConfigured();
  if (podman) candidates.Add("CONTAINER_HOST", settings.container_host);
  if (docker) candidates.Add("DOCKER_HOST", settings.docker_host);
  if (docker) TRY(candidates.AddContext());
  if (podman) candidates.AddSocket(settings.podman_socket, "Podman's usual socket", !docker);
  if (docker) candidates.AddSocket(settings.docker_socket, "the default", true);
  return candidates.Choose();
}

}  // namespace taskcell::probe
