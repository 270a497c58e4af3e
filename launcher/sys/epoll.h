#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// epoll_create1(EPOLL_CLOEXEC).
Result<UniqueFd> MakeEpoll();

// epoll_ctl(2): `id` comes back with each event.
Status EpollAdd(int epoll, int fd, uint32_t events, uint64_t id);
Status EpollChange(int epoll, int fd, uint32_t events, uint64_t id);
Status EpollRemove(int epoll, int fd);

// epoll_wait(2), EINTR retried; returns how many events there are, 0 on time-out. timeout_ms -1
// waits for ever.
Result<std::size_t> EpollWait(int epoll, std::span<struct epoll_event> events, int timeout_ms);

}  // namespace taskcell::sys
