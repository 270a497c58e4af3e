#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "probe/cli/source.h"

namespace taskcell::probe {

// What the command line of `taskcell-probe cgroup` says. At most one of user, pid and path.
struct CgroupOptions {
  std::string root;  // as in HostOptions
  std::string from;
  std::optional<uint32_t> uid;
  std::string user;
  std::optional<uint32_t> pid;
  std::string path;
  bool json = false;
};

// Whose place the options mean, looked up in `tree`, the source's or what records it; kUsage where
// there is no such user or process.
Result<cgroup::Subject> PlaceAskedFor(const CgroupOptions& options, const Source& source,
                                      sys::FileTree& tree);

// Draws the delegation chain and returns the exit status, as HostCommand does for the limits alone.
int CgroupCommand(const CgroupOptions& options);

}  // namespace taskcell::probe
