#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::probe {

// The unix socket of an engine, and why it is this one.
struct Endpoint {
  std::string socket_path;  // absolute
  std::string source;       // "DOCKER_HOST", "context 'rl' of /home/a/.docker/config.json", ...
  std::vector<std::string> losers;  // settings that name another endpoint but rank lower

  std::string Url() const { return "unix://" + socket_path; }
  // "unix:///var/run/docker.sock (from DOCKER_HOST; CONTAINER_HOST is set too and not used)"
  std::string Describe() const;
};

inline constexpr char kDefaultEngineSocket[] = "/var/run/docker.sock";

// Everything that can name an endpoint. An empty value counts as unset.
struct EndpointSettings {
  std::string configured;        // [taskcell] engine_socket
  std::string docker_host;       // DOCKER_HOST
  std::string docker_context;    // DOCKER_CONTEXT
  std::string container_host;    // CONTAINER_HOST
  std::string config_directory;  // DOCKER_CONFIG, or HOME/.docker
};

// Reads the environment of this process.
EndpointSettings SettingsFromEnvironment(std::string configured);

// Picks the endpoint: engine_socket, else DOCKER_HOST, DOCKER_CONTEXT, CONTAINER_HOST, the current
// context of <config directory>/config.json, else the default socket. The first that is set
// decides: what it says is used or refused (kConfig, code docker_unreachable), never passed over.
// Only unix sockets are spoken to: tcp://, ssh://, npipe:// and a bare path are refused with the
// reason.
Result<Endpoint> ChooseEndpoint(const EndpointSettings& settings);

// Parses one spelling: unix:///path or unix:/path; `source` goes into the error.
Result<std::string> ParseEngineUrl(const std::string& url, const std::string& source);

}  // namespace taskcell::probe
