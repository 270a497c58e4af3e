#include "launcher/sys/poll.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/self.h"

namespace taskcell::sys {

Result<int> PollAll(std::span<struct pollfd> entries, int timeout_ms) {
  while (true) {
    int ready = ::poll(entries.data(), entries.size(), timeout_ms);
    if (ready >= 0) return ready;
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("poll (", entries.size(), " descriptors)"));
  }
}

Result<UniqueFd> MakeEvent() {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return Failure("eventfd");
  return UniqueFd(fd);
}

Status SignalEvent(int fd) {
  if (::eventfd_write(fd, 1) < 0) return Failure(Text("eventfd_write (fd ", fd, ")"));
  return Ok();
}

Status SetNonBlocking(int fd) { return SetStatusFlags(fd, TRY(StatusFlags(fd)) | O_NONBLOCK); }

Result<std::size_t> WriteSome(int fd, std::string_view data) {
  while (true) {
    ssize_t put = ::write(fd, data.data(), data.size());
    if (put >= 0) return static_cast<std::size_t>(put);
    int err = errno;
    if (err == EAGAIN) return std::size_t{0};
    if (err != EINTR) return FailureOf(err, Text("write (fd ", fd, ")"));
  }
}

}  // namespace taskcell::sys
