#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::probe {

// What came of trying a feature of the kernel.
enum class Outcome : uint8_t { kWorks, kAbsent, kForbidden, kUnknown };
std::string_view Name(Outcome outcome);  // "works", "absent", "forbidden", "unknown"

struct Trial {
  std::string feature;  // "openat2", "idmapped-mounts /home (ext4)", ...
  Outcome outcome = Outcome::kUnknown;
  int err = 0;         // of the step that failed
  std::string detail;  // that step, or a figure such as an ABI
};

// A socket of an engine, as this process may use it.
struct SocketAccess {
  std::string path;
  int err = 0;  // of access(2) for reading and writing; 0: this user may use it
};

// The room on a file system.
struct Space {
  std::string path;
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  // for an ordinary user
};

// Everything about a host that stands in no file: plain values, so that they can be collected with
// its files.
struct LiveFacts {
  std::vector<Trial> trials;
  std::vector<SocketAccess> sockets;
  std::vector<Space> spaces;
  std::string engine_socket;      // which endpoint this user's settings choose
  std::string engine_source;      // and by which setting
  std::string engine_error;       // or why none can be chosen
  std::string runtime_directory;  // XDG_RUNTIME_DIR
  int64_t unix_time_s = 0;
  uint64_t max_tasks = 0;  // RLIMIT_NPROC, ~0 for none
  uint64_t own_tasks = 0;  // threads of this uid on the host, as far as they are visible

  const Trial* Find(std::string_view feature) const;
};

std::string ToJson(const LiveFacts& facts);
// Reads what ToJson wrote; kViolation where it is not that.
Result<LiveFacts> ParseLiveFacts(std::string_view json);

}  // namespace taskcell::probe
