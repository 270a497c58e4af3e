#pragma once

#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cgroup/layout.h"

namespace taskcell::cgroup {

// A cgroup directory below which the caller may make cgroups with limits.
struct Place {
  bool unified = false;
  std::string path;    // for messages
  UniqueFd directory;  // O_RDONLY
};

// Finds where this process may make cgroups that limit `wanted` on one hierarchy. Tried in this
// order:
//  1. its own cgroup, where that is delegated to it: the directory is the caller's own (root owns
//  them
//     all). On the unified hierarchy a cgroup can't hold processes and hand controllers on, so the
//     processes of the own cgroup are first moved to `supervisor` below it, and a caller that is in
//     `supervisor` uses its parent. There root leaves a cgroup alone that a service manager made:
//     it uses its own only when that is what is mounted, or `supervisor`;
//  2. `<mount point>/taskcell/uid-<uid>`, made once by root for that user (root makes its own on
//     demand). On the unified hierarchy only root can be moved there from elsewhere
//     (cgroups(7): the common ancestor must be writable).
// With a `parent`, a cgroup's path below each mount point, only that one is tried.
// On the unified hierarchy the controllers are turned on for the children. The Error has the code
// "resource_limits_unenforced" and names the controllers, what was tried, and the remedy.
Result<Place> FindPlace(const Hierarchy& hierarchy, const std::vector<Controller>& wanted,
                        const std::string& parent = "");

}  // namespace taskcell::cgroup
