#pragma once

#include <string>

#include "launcher/cell/attestation.h"

namespace taskcell::cell {

// CRITICAL: what is wrong with `descriptor` as a standard stream of a cell, for a person; empty
// when nothing is. A plain file on no file system of the kernel's own, a pipe, a terminal and the
// harmless devices are streams; a socket where nothing can be received from it any more, or where
// Landlock keeps what comes by it from being used (`landlock`): descriptors travel by sockets
// (unix(7)). Anything else is a way to the host (CVE-2024-21626). Pure.
std::string StreamFault(const DescriptorSeen& descriptor, bool landlock);

}  // namespace taskcell::cell
