#include "launcher/cell/job_settings.h"

#include <algorithm>

namespace taskcell::cell {

bool IsRealTime(uint32_t policy) {
  constexpr uint32_t kRealTime[] = {1, 2, 6};  // SCHED_FIFO, SCHED_RR, SCHED_DEADLINE
  return std::find(std::begin(kRealTime), std::end(kRealTime), policy) != std::end(kRealTime);
}

}  // namespace taskcell::cell
