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
  std::vector<std::string> losers;  // what names another endpoint but ranks lower: "DOCKER_HOST is
                                    // set too", "/var/run/docker.sock is there too"

  std::string Url() const { return "unix://" + socket_path; }
  // "unix:///run/user/1500/podman/podman.sock (from CONTAINER_HOST; DOCKER_HOST is set too and not
  // used)"
  std::string Describe() const;
};

inline constexpr char kDefaultEngineSocket[] = "/var/run/docker.sock";

// Everything that can name an endpoint. An empty value counts as unset.
struct EndpointSettings {
  std::string configured;        // [taskcell] engine_socket
  std::string container_host;    // CONTAINER_HOST
  std::string docker_host;       // DOCKER_HOST
  std::string docker_context;    // DOCKER_CONTEXT
  std::string config_directory;  // DOCKER_CONFIG, or HOME/.docker
  std::string podman_socket;     // where this user's Podman service listens, if it runs
  std::string docker_socket = kDefaultEngineSocket;
};

// Reads the environment and the user of this process.
EndpointSettings SettingsFromEnvironment(std::string configured);

// Which engines are looked for.
enum class EngineFlavour { kAny, kDocker, kPodman };

// Picks the endpoint. kAny: engine_socket, else CONTAINER_HOST, DOCKER_HOST, DOCKER_CONTEXT or else
// the current context of <config directory>/config.json, the user's Podman socket if there is one,
// the default socket. kDocker leaves out what is Podman's (CONTAINER_HOST and its socket), kPodman
// what is Docker's, and ends at the user's Podman socket. The first that is set or exists decides:
// what it says is used or refused (kConfig, code docker_unreachable), never passed over. Only unix
// sockets are spoken to: tcp://, ssh://, npipe:// and a bare path are refused with the reason.
Result<Endpoint> ChooseEndpoint(const EndpointSettings& settings,
                                EngineFlavour flavour = EngineFlavour::kAny);

// Parses one spelling: unix:///path or unix:/path; `source` goes into the error.
Result<std::string> ParseEngineUrl(const std::string& url, const std::string& source);

}  // namespace taskcell::probe
