#pragma once

#include <span>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/process.h"

namespace taskcell::sys {

// A descriptor for a new program: `fd` of this process becomes `number` (3 or more) there.
struct PassedDescriptor {
  int fd = -1;
  int number = -1;
};

// posix_spawn(3) of the program at `path`: safe in a process with threads. It gets /dev/null as 0,
// 1 and 2, exactly the descriptors passed, the environment given and nothing else, default signal
// dispositions with none blocked, and a process group of its own, so that a terminal's interrupt
// does not reach it.
Result<Child> SpawnProgram(const std::string& path, const std::vector<std::string>& argv,
                           const std::vector<std::string>& environment,
                           std::span<const PassedDescriptor> passed);

}  // namespace taskcell::sys
