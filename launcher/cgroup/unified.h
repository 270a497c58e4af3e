#pragma once

#include <vector>

#include "launcher/base/result.h"
#include "launcher/cgroup/layout.h"

namespace taskcell::cgroup {

// The child of a delegated cgroup that keeps its processes, so that it can hand controllers on.
inline constexpr char kSupervisor[] = "supervisor";

// Turns `wanted` on for the children of a cgroup of the unified hierarchy. A controller that is not
// in its cgroup.controllers is kUnsupported, a threaded cgroup too. When processes are in the way
// (the rule of cgroups(7) that inner cgroups hold none) and `may_evacuate`, they are moved to
// `supervisor` first; processes that can't be moved are kDenied.
Status EnableControllers(int cgroup_fd, const std::vector<Controller>& wanted, bool may_evacuate);

}  // namespace taskcell::cgroup
