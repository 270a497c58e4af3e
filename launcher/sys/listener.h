#pragma once

#include <cstdint>

#include "launcher/base/result.h"

namespace taskcell::sys {

// Returns the port of `fd` when it is a TCP socket that listens on 127.0.0.1 and nothing else; an
// Error of kind kViolation otherwise. For descriptors that came from an untrusted peer.
Result<uint16_t> LoopbackListenerPort(int fd);

}  // namespace taskcell::sys
