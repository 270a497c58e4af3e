#include "launcher/sys/inode_time.h"

#include <sys/stat.h>

#include <array>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

int64_t Milliseconds(clockid_t clock) {
  constexpr int64_t kMsPerSecond = 1000;
  constexpr int64_t kNsPerMs = 1'000'000;
  struct timespec now = {};
  (void)::clock_gettime(clock, &now);  // ignoring: cannot fail with these clocks
  return int64_t{now.tv_sec} * kMsPerSecond + now.tv_nsec / kNsPerMs;
}

}  // namespace

struct timespec InodeClock() {
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // ignoring: cannot fail with this clock
  return now;
}

int64_t ClockOffsetMs() { return Milliseconds(CLOCK_REALTIME) - Milliseconds(CLOCK_BOOTTIME); }

void SleepMs() {
  constexpr struct timespec kMillisecond = {0, 1'000'000};
  // ignoring: whoever waits looks again
  (void)::clock_nanosleep(CLOCK_MONOTONIC, 0, &kMillisecond, nullptr);
}

Status SetModifiedNow(int fd) {
  std::array<struct timespec, 2> times = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_nsec = UTIME_NOW;
  if (::futimens(fd, times.data()) < 0) return Failure(Text("futimens (fd ", fd, ")"));
  return Ok();
}

}  // namespace taskcell::sys
