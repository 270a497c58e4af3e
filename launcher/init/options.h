#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/job.h"

namespace taskcell::init {

// One limit file that the launcher opened for init to read: name as in cgroup::LimitFile.
struct LimitDescriptor {
  std::string name;
  int fd = -1;
};

// How taskcell-init was started. Its command line is made by the launcher or the gateway, never by
// a user.
struct Options {
  int gate_fd = -1;         // --gate-fd=N: the gate, already connected
  std::string gate_path;    // --gate-path=PATH: or where to connect it
  bool listen = false;      // --listen: make the loopback listener of NetworkMode::kProvider
  bool tunnels = false;     // --tunnels: and a second one; with --listen only
  uint64_t nofile = 0;      // --nofile=N: RLIMIT_NOFILE of the job; 0: as it is
  uint64_t file_bytes = 0;  // --file-size=N: RLIMIT_FSIZE of the job; 0: as it is
  cell::JobStdio stdio =
      cell::JobStdio::kRelay;           // --inherit, --terminal. What the job will ask for
  int filter_fd = -1;                   // --seccomp=FD: holds the job's filter; -1: the default one
  std::vector<LimitDescriptor> limits;  // --limit=NAME:FD
};

// Parses the arguments after the program's name. Exactly one gate is required; whatever else is not
// as above is an Error of kind kUsage. Pure.
Result<Options> ParseOptions(std::span<const std::string_view> arguments);

}  // namespace taskcell::init
