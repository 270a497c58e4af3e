#pragma once

#include <string>
#include <vector>

namespace taskcell::probe {

// What the command line of `taskcell-probe attack` says. At most one of json, sarif and quiet.
struct AttackOptions {
  std::string engine = "native";     // auto, docker, podman, native, unix:///path
  std::vector<std::string> attacks;  // names of attacks or topics; none: all
  bool list = false;
  bool json = false;
  bool sarif = false;
  bool quiet = false;
};

// Attacks cells of the engine, prints to standard output (an unusable command line: to standard
// error) and returns the exit status of host_command.h: kExitNotReady where anything escaped,
// kExitUnknown where nothing did and not all is proven. SIGINT, SIGTERM and SIGHUP end it after the
// attack that runs, with everything removed.
int AttackCommand(const AttackOptions& options);

}  // namespace taskcell::probe
