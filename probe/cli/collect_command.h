#pragma once

#include <string>

#include "probe/cli/cgroup_command.h"
#include "probe/facts/bundle.h"

namespace taskcell::probe {

// What the command line of `taskcell-probe collect` says.
struct CollectOptions {
  CgroupOptions about;  // whose place, and where to look
  std::string output;   // the archive, which must not exist
};

// Records everything the rules look at into an archive, prints what that holds, and returns the
// exit status: 0 where it was written. Changes nothing else.
int CollectCommand(const CollectOptions& options);

// What the archive of a bundle holds, for a person: each file with its bytes, and what could not be
// read. Pure.
std::string ContentsOf(const Bundle& bundle);

}  // namespace taskcell::probe
