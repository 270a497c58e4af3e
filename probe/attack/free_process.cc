#include "probe/attack/free_process.h"

#include <algorithm>
#include <csignal>

#include "launcher/sys/privilege.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"

namespace taskcell::attack {
namespace {

constexpr uint64_t kLongestUs = 20'000'000;

[[noreturn]] void Compute(uint64_t until_us) {
  (void)sys::SetParentDeathSignal(SIGKILL);  // ignoring: it ends by itself
  while (sys::MonotonicUs() < until_us) {
  }
  sys::ExitNow(0);
}

Result<uint64_t> UsedByChildren() {
  sys::Usage usage = TRY(sys::ChildrenUsage());
  return usage.user_us + usage.system_us;
}

}  // namespace

Result<FreeProcess> FreeProcess::Start() {
  uint64_t start_us = sys::MonotonicUs();
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) Compute(start_us + kLongestUs);
  return FreeProcess(std::move(cloned.child), start_us);
}

Result<uint64_t> FreeProcess::End() {
  uint64_t before = TRY(UsedByChildren());
  (void)child_.Signal(SIGKILL);  // ignoring: it may have ended
  TRY(child_.Wait());
  uint64_t lasted_us = std::max<uint64_t>(sys::MonotonicUs() - start_us_, 1);
  return (TRY(UsedByChildren()) - before) * 1000 / lasted_us;
}

}  // namespace taskcell::attack
