#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::attack {

// What the payloads aim at. The things outside of a cell are made by the driver for this and by it
// alone; a path may mean something else (or nothing) inside of the cell, and that is the point.
struct Targets {
  std::string scratch = "/tmp";  // a directory the payload may write to
  std::string secret;            // a file of the host
  std::string socket;            // a listening unix socket of the host
  std::string abstract_socket;   // the name, without its NUL, of one
  std::string gate;              // where a cell's gate was
  std::string queue;             // a POSIX message queue
  std::string shared_file;       // a file in /dev/shm of the host
  std::string setuid_program;    // taskcell-attacker, owned by root, with the set-user-id bit
  std::string capable_program;   // taskcell-attacker with file capabilities
  std::string group_secret;      // a file that a supplementary group may read
  std::string roots;             // the directory of the hostile roots
  std::string canary;            // where their links lead
  uint64_t port = 0;             // a listening TCP socket on the host's 127.0.0.1
  uint64_t ipc_key = 0;          // of System V objects of the host
  uint64_t victim = 0;           // a process of the same user outside
  uint64_t victim_address = 0;   // where in its memory something stands
  uint64_t gateway_uid = 0;      // the kernel's uid of who makes the cells
  // The limits of the cell.
  uint64_t pids = 64;
  uint64_t memory_bytes = uint64_t{32} << 20U;
  uint64_t cpu_millis = 300;
  uint64_t nofile = 256;
  uint64_t tmpfs_bytes = uint64_t{8} << 20U;
  uint64_t output_bytes = uint64_t{1} << 20U;
  uint64_t deadline_ms = 300;
};

// "NAME=VALUE" for each that is set, and back. ParseTarget: kUsage for anything else. Pure.
std::vector<std::string> TargetWords(const Targets& targets);
Status ParseTarget(std::string_view word, Targets& targets);

}  // namespace taskcell::attack
