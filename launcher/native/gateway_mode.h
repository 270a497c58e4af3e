#pragma once

#include "launcher/native/options.h"

namespace taskcell::native {

// taskcell-launch as the gateway's hand: reads the plan from its descriptor, makes the cell, gives
// the passed gate end to taskcell-init untouched, and stays until init has ended; then the cgroup
// is removed. JSON lines on the status descriptor:
//   {"event":"made","pid":P,"uid_separation":"...","proc":"full|subset"}
//   {"event":"failed","kind":"...","code":"...","text":"..."}
//   {"event":"ended","status":N,"signal":N,"oom_kills":N,"pids_refusals":N,...}
// When the reader of the status descriptor is gone, or on SIGTERM, SIGINT, SIGHUP or SIGQUIT, the
// whole cell is killed. Returns the exit status: 0 when a cell was made, else 125.
int RunForGateway(const Options& options);

// mounts::ServeSnapshots on this socket. Returns the exit status: 0 when its other end is gone.
int SnapshotForGateway(int socket);

// mounts::ServeFiles on this socket. Returns the exit status: 0 when its other end is gone.
int ReadForGateway(int socket);

}  // namespace taskcell::native
