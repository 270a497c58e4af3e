#include "launcher/sys/signals.h"

#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

// NOLINTBEGIN(concurrency-mt-unsafe): the launcher, which uses these, has one thread
namespace taskcell::sys {

bool IsIgnored(int signal) {
  struct sigaction action = {};
  (void)::sigaction(signal, nullptr, &action);  // ignoring: fails for what is no signal only
  return action.sa_handler == SIG_IGN;
}

Result<CaughtSignals> CatchSignals(std::initializer_list<int32_t> signals) {
  CaughtSignals caught;
  sigset_t set;
  ::sigemptyset(&set);
  for (int32_t signal : signals) {
    if (IsIgnored(signal)) {
      caught.ignored.push_back(signal);
    } else {
      ::sigaddset(&set, signal);
    }
  }
  if (::sigprocmask(SIG_BLOCK, &set, &caught.mask_before) < 0) return Failure("sigprocmask block");
  caught.fd.Reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!caught.fd.valid()) return Failure("signalfd");
  return caught;
}

Status RestoreSignals(const sigset_t& mask) {
  if (::sigprocmask(SIG_SETMASK, &mask, nullptr) < 0) return Failure("sigprocmask");
  return Ok();
}

WithSignalMask::WithSignalMask(const sigset_t& mask) {
  (void)::sigprocmask(SIG_SETMASK, &mask, &before_);  // ignoring: fails for a bad `how` alone
}

WithSignalMask::~WithSignalMask() {
  (void)::sigprocmask(SIG_SETMASK, &before_, nullptr);  // ignoring: as above
}

Status SetAlarm(uint64_t ms) {
  constexpr uint64_t kMsPerSecond = 1000;
  struct itimerval timer = {};
  timer.it_value.tv_sec = static_cast<time_t>(ms / kMsPerSecond);
  timer.it_value.tv_usec = static_cast<suseconds_t>(ms % kMsPerSecond * kMsPerSecond);
  // Whoever started this process may have had it ignored, but not the limit that was asked for.
  if (ms != 0 && IsIgnored(SIGALRM)) (void)::signal(SIGALRM, SIG_DFL);
  if (::setitimer(ITIMER_REAL, &timer, nullptr) < 0) return Failure("setitimer");
  return Ok();
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
