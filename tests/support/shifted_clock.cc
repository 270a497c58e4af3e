// Preloaded into a program (LD_PRELOAD), sets its time of day by as many seconds forward as the
// file SHIFTED_CLOCK holds, a number of 8 bytes that may change at any time. The clocks that nobody
// can set are left alone, as they are when a clock jumps; but for the steady one, which goes ahead
// by what the file SHIFTED_STEADY_CLOCK holds, where a test does not want to wait.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

const volatile long* Map(const char* name) {
  static const long none = 0;
  const char* path = ::secure_getenv(name);
  const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &none;
  void* mapped = ::mmap(nullptr, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  (void)::close(file);
  return mapped == MAP_FAILED ? &none : static_cast<const volatile long*>(mapped);
}

long OfDay() {
  static const volatile long* const shift = Map("SHIFTED_CLOCK");
  return *shift;
}

long Steady() {
  static const volatile long* const shift = Map("SHIFTED_STEADY_CLOCK");
  return *shift;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* now) {
  const long failed = ::syscall(SYS_clock_gettime, clock, now);
  if (failed != 0) return static_cast<int>(failed);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += OfDay();
  if (clock == CLOCK_MONOTONIC) now->tv_sec += Steady();
  return 0;
}

time_t time(time_t* into) noexcept {
  struct timespec now = {};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* now, void* /*zone*/) noexcept {
  struct timespec exact = {};
  (void)clock_gettime(CLOCK_REALTIME, &exact);
  *now = {exact.tv_sec, exact.tv_nsec / 1000};
  return 0;
}

}  // extern "C"
