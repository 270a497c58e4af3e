#pragma once

#include "launcher/base/result.h"

namespace taskcell::cgroup {

// Moves this process out of a login session's cgroup into a new scope of its user's systemd
// manager, with every controller the manager has delegated to it: what `systemd-run --user --scope
// -p Delegate=yes` does, in place. The scope goes when its last process has gone. kUnsupported for
// root, for a process of a service (which would lose it, and its limits on it), for the same reason
// for one in any unit of that manager, off the unified hierarchy, and where there is no such
// manager. It takes as long as some launches, so it is for a
// caller whose own cgroup will not do.
Status EnterOwnScope();

}  // namespace taskcell::cgroup
