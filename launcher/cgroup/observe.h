#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/attestation.h"
#include "launcher/cgroup/layout.h"

namespace taskcell::cgroup {

// Reads the outside half of an attestation for the process `pid`, which the caller keeps from being
// reaped (it is its child, or the caller holds its gate): the kernel ids from /proc/<pid>/status,
// the lines of /proc/<pid>/cgroup, the namespaces of the caller, and the effective limits: for each
// one the smallest from the process's cgroup up to the root of what is mounted here, on v1 and v2,
// whatever engine made the cell. A cgroup that is not visible from here leaves its limits nullopt,
// which no plan is equal to. On a host without any swap and without a swap limit file
// memory_and_swap_bytes is memory_bytes.
Result<cell::OutsideAttestation> Observe(pid_t pid);

// The same with a layout read before, and /proc/<pid> already opened; `more` are controllers to
// look at beside kControllers.
Result<cell::OutsideAttestation> ObserveIn(const Layout& layout, int proc_pid_fd, pid_t pid,
                                           bool host_has_swap,
                                           const std::vector<Controller>& more = {});

// Where one process's cgroup for a controller is.
struct Location {
  const Hierarchy* hierarchy;  // into the layout
  std::string below;           // below its mount point
};
// Finds it from the lines of /proc/<pid>/cgroup; nullopt when it is not visible from here. `name`
// is the kernel's, such as "cpuacct". Pure.
Result<std::optional<Location>> Locate(const Layout& layout,
                                       const std::vector<std::string>& cgroups,
                                       std::string_view name);

// A cgroup path and each one above it, up to "" (the mount point): "a/b", "a", "". Pure.
std::vector<std::string> LevelsUpwards(std::string_view below);

// The levels that belong to one cell alone: `below` itself, and for a native cell's run-<id>/cell
// the run-<id> above it. Pure.
std::vector<std::string> LevelsOfCell(std::string_view below);

}  // namespace taskcell::cgroup
