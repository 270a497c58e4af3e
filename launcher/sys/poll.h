#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// poll(2) on several descriptors, EINTR retried; returns how many have revents, 0 on time-out.
// timeout_ms -1 waits for ever.
Result<int> PollAll(std::span<struct pollfd> entries, int timeout_ms);

// eventfd(2), CLOEXEC and non-blocking: readable once SignalEvent was called.
Result<UniqueFd> MakeEvent();
Status SignalEvent(int fd);

// Sets O_NONBLOCK.
Status SetNonBlocking(int fd);

// One write(2) to a descriptor that does not block: how much of `data` was taken, 0 where nothing
// is possible now. EPIPE when the reader is gone.
Result<std::size_t> WriteSome(int fd, std::string_view data);

}  // namespace taskcell::sys
