#pragma once

#include <optional>
#include <string>

#include "launcher/base/result.h"

namespace taskcell::cgroup {

// The file that says which processors are in force in a cgroup, whatever was asked for.
inline constexpr char kCpusInForceV1[] = "cpuset.effective_cpus";
inline constexpr char kCpusInForceV2[] = "cpuset.cpus.effective";

// Lets the cgroup's processes run on the processors of `list` (a NormalCpuList) alone, and makes
// sure that those are in force: one that does not exist, is offline or belongs to no cgroup above
// is an Error that names what can be had.
Status ApplyCpuset(int cgroup_fd, bool unified, const std::string& list);

// v1 alone: a new cpuset takes no process before it has processors and memory nodes; gives it those
// of the one above where it has none.
Status InheritCpuset(int cgroup_fd);

// The list in force in the cgroup `prefix` ("" or "a/b/") below the directory; nothing where there
// is no such file.
Result<std::optional<std::string>> ReadCpusInForce(int directory_fd, const std::string& prefix,
                                                   bool unified);

}  // namespace taskcell::cgroup
