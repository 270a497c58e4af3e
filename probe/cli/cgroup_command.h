#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace taskcell::probe {

// What the command line of `taskcell-probe cgroup` says. At most one of user, pid and path.
struct CgroupOptions {
  std::string root;
  std::optional<uint32_t> uid;
  std::string user;
  std::optional<uint32_t> pid;
  std::string path;
  bool json = false;
};

// Draws the delegation chain and returns the exit status, as HostCommand does for the limits alone.
int CgroupCommand(const CgroupOptions& options);

}  // namespace taskcell::probe
