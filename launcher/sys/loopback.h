#pragma once

#include <cstdint>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// A TCP connection to 127.0.0.1:`port`, non-blocking once it is there.
Result<UniqueFd> ConnectLoopback(uint16_t port);

// Sends what the socket takes of `data` without waiting; 0 when it takes nothing now. No SIGPIPE: a
// peer that went away is an Error.
Result<std::size_t> SendSome(int fd, std::string_view data);

}  // namespace taskcell::sys
