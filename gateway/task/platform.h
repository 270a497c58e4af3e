#pragma once

#include "launcher/base/result.h"

namespace taskcell::gateway {

// Tries what no cell can do without: a gate (packet sockets) and hold of a process (pidfd_open).
// Error code unsupported_platform, naming the call that is missing.
Status CheckPlatform();

}  // namespace taskcell::gateway
