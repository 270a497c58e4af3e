#pragma once

#include <sys/types.h>

#include <vector>

#include "launcher/base/result.h"

namespace taskcell::host {

// A process and its parent.
struct Parentage {
  pid_t pid = 0;
  pid_t parent = 0;
};

// Every process whose chain of parents leads to `ancestor`, without itself. Pure.
std::vector<pid_t> DescendantsOf(pid_t ancestor, const std::vector<Parentage>& processes);

// Sends SIGKILL to every descendant of this process, which adopts orphans: whatever started a
// session of its own, or lost its parent, is among them. One that was born meanwhile is not: to be
// called again until there is no child left.
Status KillDescendants();

// KillDescendants until none is left or `timeout_ms` is over, reaping them.
Status EndDescendants(int timeout_ms);

}  // namespace taskcell::host
