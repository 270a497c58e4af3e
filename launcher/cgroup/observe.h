#pragma once

#include <sys/types.h>

#include "launcher/cell/attestation.h"
#include "launcher/cgroup/layout.h"

namespace taskcell::cgroup {

// Reads the outside half of an attestation for the process `pid`, which the caller keeps from being
// reaped (it is its child, or the caller holds its gate): the kernel ids from /proc/<pid>/status,
// the lines of /proc/<pid>/cgroup, and the effective limits: for each one the smallest from the
// process's cgroup up to the root of what is mounted here, on v1 and v2, whatever engine made the
// cell. A cgroup that is not visible from here leaves its limits nullopt, which no plan is equal
// to. On a host without any swap and without a swap limit file memory_and_swap_bytes is
// memory_bytes.
Result<cell::OutsideAttestation> Observe(pid_t pid);

// The same with a layout read before, and /proc/<pid> already opened.
Result<cell::OutsideAttestation> ObserveIn(const Layout& layout, int proc_pid_fd, pid_t pid);

}  // namespace taskcell::cgroup
