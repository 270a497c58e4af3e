#include "launcher/sys/signals.h"

#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

// NOLINTBEGIN(concurrency-mt-unsafe): the launcher, which uses these, has one thread
namespace taskcell::sys {
namespace {

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : signals) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

Result<sigset_t> BlockSignals(std::initializer_list<int> signals) {
  sigset_t set = SetOf(signals);
  sigset_t before;
  if (::sigprocmask(SIG_BLOCK, &set, &before) < 0) return Failure("sigprocmask block");
  return before;
}

Status RestoreSignals(const sigset_t& mask) {
  if (::sigprocmask(SIG_SETMASK, &mask, nullptr) < 0) return Failure("sigprocmask");
  return Ok();
}

Result<UniqueFd> MakeSignalFd(std::initializer_list<int> signals) {
  sigset_t set = SetOf(signals);
  int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return Failure("signalfd");
  return UniqueFd(fd);
}

Result<int> TakeSignal(int signal_fd) {
  struct signalfd_siginfo info = {};
  ssize_t got = ::read(signal_fd, &info, sizeof info);
  if (got == static_cast<ssize_t>(sizeof info)) return static_cast<int>(info.ssi_signo);
  int err = errno;
  if (got < 0 && err != EAGAIN && err != EINTR)
    return FailureOf(err, Text("read signalfd (fd ", signal_fd, ")"));
  return 0;
}

uint64_t MonotonicUs() {
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);  // ignoring: cannot fail with this clock
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

int64_t UnixMs() {
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_REALTIME, &now);  // ignoring: cannot fail with this clock
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace taskcell::sys
// NOLINTEND(concurrency-mt-unsafe)
