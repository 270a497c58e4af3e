#include "launcher/mounts/settled.h"

#include <tuple>

#include "launcher/mounts/server.h"
#include "launcher/sys/file.h"
#include "launcher/sys/inode_time.h"

namespace taskcell::mounts {

struct timespec SettledBefore() {
  constexpr long kMarginNs = 100'000'000;  // more than any tick
  constexpr long kSecondNs = 1'000'000'000;
  struct timespec time = sys::InodeClock();
  time.tv_nsec -= kMarginNs;
  if (time.tv_nsec < 0) {
    time.tv_nsec += kSecondNs;
    --time.tv_sec;
  }
  return time;
}

bool MayBeCut(const struct timespec& changed) { return changed.tv_nsec == 0; }

struct timespec LatestOf(const struct timespec& changed) {
  constexpr time_t kMostCutSeconds = 2;
  struct timespec latest = changed;
  if (MayBeCut(changed)) latest.tv_sec += kMostCutSeconds;
  return latest;
}

bool HasForeignTimes(int fd) {
  const Result<Server> server = ServerOf(fd);
  return !server.ok() || server->what != Server::What::kKernel;
}

Result<struct stat> StatSettled(int fd) {
  constexpr int kMaxWaits = 30;  // ms, at the least; a tick is 10 ms at the most
  for (int waits = 0;; ++waits) {
    struct stat info = TRY(sys::Stat(fd));
    if (waits == kMaxWaits || IsEarlier(info.st_ctim, sys::InodeClock())) return info;
    sys::SleepMs();
  }
}

bool IsEarlier(const struct timespec& a, const struct timespec& b) {
  return std::tie(a.tv_sec, a.tv_nsec) < std::tie(b.tv_sec, b.tv_nsec);
}

}  // namespace taskcell::mounts
