#include "probe/live/asked.h"

#include <gtest/gtest.h>

#include "launcher/cell/cell_plan.h"
#include "probe/live/leftovers.h"

namespace taskcell::live {
namespace {

TEST(AskedTest, TheDefaultsAreFineAndMakeAPlan) {
  Asked asked;
  EXPECT_TRUE(CheckAsked(asked).ok());
  cell::CellPlan plan = PlanProbe(asked, 1000, 1000);
  plan.run_id = std::string(32, 'a');
  EXPECT_TRUE(cell::CheckPlan(plan).ok());
  for (const cell::PlannedTmpfs& tmpfs : plan.tmpfs)
    EXPECT_LE(tmpfs.size_bytes * 2, asked.limits.memory_bytes) << "it counts against the memory";
}

// An emulated processor needed 7 s for the defaults; what asks for more is given more.
TEST(AskedTest, TimeFollowsWhatIsToBeReachedAndEndsBeforeTheImageIsTakenForStale) {
  uint64_t usual_ms = LimitsDeadlineMs(Asked());
  EXPECT_GE(usual_ms, 20'000U);
  Asked more;
  more.limits.memory_bytes *= 2;
  EXPECT_GT(LimitsDeadlineMs(more), usual_ms);
  more = Asked();
  more.limits.pids *= 2;
  EXPECT_GT(LimitsDeadlineMs(more), usual_ms);
  Asked most;
  most.limits = {kMostProbeMemory, kMostProbePids, kMostProbeCpuMillis, 256};
  EXPECT_LT(LimitsDeadlineMs(most) / 1000 + 3 * kAbandonedAfterMs / 1000,
            static_cast<uint64_t>(kStaleImageSeconds));
}

}  // namespace
}  // namespace taskcell::live
