#pragma once

#include <string>

#include "launcher/base/result.h"

namespace taskcell::cgroup {

// Kills every process in a cgroup and below it: cgroup.kill where the kernel has it (v2, 5.14),
// else each process that cgroup.procs lists, by pidfd and only while it still is listed. Does not
// wait.
Status KillAll(int cgroup_fd);

// Removes the cgroup `name` below `parent_fd` and all below it: kills what runs there and waits for
// the dead to be gone, at most `timeout_ms`. Done when it is not there.
Status RemoveCgroup(int parent_fd, const std::string& name, int timeout_ms);

// Removes cgroups of earlier runs below a place whose owner died without removing them: named
// run-<id>, not locked by a living owner, without processes. Never fails: what can't be removed now
// is tried again by the next run.
void SweepStale(int place_fd);

}  // namespace taskcell::cgroup
