#include "launcher/sys/epoll.h"

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

Status Control(int epoll, int operation, int fd, uint32_t events, uint64_t id) {
  struct epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll, operation, fd, &event) < 0)
    return Failure(Text("epoll_ctl operation ", operation, " (fd ", fd, ")"));
  return Ok();
}

}  // namespace

Result<UniqueFd> MakeEpoll() {
  int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return Failure("epoll_create1");
  return UniqueFd(fd);
}

Status EpollAdd(int epoll, int fd, uint32_t events, uint64_t id) {
  return Control(epoll, EPOLL_CTL_ADD, fd, events, id);
}

Status EpollChange(int epoll, int fd, uint32_t events, uint64_t id) {
  return Control(epoll, EPOLL_CTL_MOD, fd, events, id);
}

Status EpollRemove(int epoll, int fd) { return Control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

Result<std::size_t> EpollWait(int epoll, std::span<struct epoll_event> events, int timeout_ms) {
  while (true) {
    int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), timeout_ms);
    if (count >= 0) return static_cast<std::size_t>(count);
    int err = errno;
    if (err != EINTR) return FailureOf(err, "epoll_wait");
  }
}

}  // namespace taskcell::sys
