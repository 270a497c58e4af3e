#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// Makes a SOCK_STREAM unix socket at `path` (at most 107 bytes; through /proc/self/fd/N/ it may be
// as deep as it likes), which must not exist, with mode 0600 from its birth on, and listens. For
// the time of the call the umask of the process is another: to be called before threads are.
Result<UniqueFd> ListenStream(const std::string& path);

// Sends one datagram to the unix socket at `path`; one that begins with '@' is abstract.
Status SendDatagram(const std::string& path, std::string_view text);

}  // namespace taskcell::sys
