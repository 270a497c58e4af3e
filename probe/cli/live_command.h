#pragma once

#include <functional>
#include <string>

#include "launcher/base/result.h"
#include "probe/engine/endpoint.h"
#include "probe/live/asked.h"

namespace taskcell::probe {

// What the commands live and engine share on their command line; quantities as a person writes
// them, empty where not given.
struct LiveOptions {
  std::string memory = {};
  std::string pids = {};
  std::string cpus = {};
  bool json = false;
  bool quiet = false;
};

struct EngineOptions {
  LiveOptions live;
  std::string engine = "auto";  // auto, docker, podman, native, unix:///path
  bool keep_image = false;
};

// Each breaks the limits, prints to standard output (an unusable command line: to standard error)
// and returns the exit status of host_command.h. SIGINT, SIGTERM and SIGHUP end it after the trial
// that runs, with everything removed.
int LiveCommand(const LiveOptions& options);
int EngineCommand(const EngineOptions& options);

// The limits to ask for; kUsage names the option. Pure.
Result<live::Asked> ParseAsked(const LiveOptions& options);

// Which endpoint "auto", "docker", "podman" or a URL stands for, given what the environment says;
// anything else is kUsage. The rules for what is set are ChooseEndpoint's.
Result<Endpoint> ChooseProbeEndpoint(const std::string& engine, const EndpointSettings& settings);

// The same with what the environment of this process says.
Result<Endpoint> FindProbeEndpoint(const std::string& engine);

// Makes SIGINT, SIGTERM and SIGHUP be kept in mind instead of ending this process, and returns what
// tells whether one came. To be called once.
Result<std::function<bool()>> CatchStop();

}  // namespace taskcell::probe
