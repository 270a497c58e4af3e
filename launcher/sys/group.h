#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/sys/process.h"

namespace taskcell::sys {

struct GroupResult {
  ExitInfo exit;
  bool timed_out = false;
  bool truncated = false;
  std::string output;  // stdout and stderr together, in the order written
};

// Runs `argv` (argv[0] is an absolute path) in a process group of its own, with this process's
// environment and working directory and /dev/null for stdin, until its first process ends or
// `timeout_ms` are over. Then the whole group is killed, so that nothing of it outlives the call
// but what left the group. At most `output_limit` bytes are kept; more is read and dropped.
Result<GroupResult> RunGroup(const std::vector<std::string>& argv, int timeout_ms,
                             std::size_t output_limit);

}  // namespace taskcell::sys
