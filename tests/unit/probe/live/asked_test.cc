#include "probe/live/asked.h"

#include <gtest/gtest.h>

#include "launcher/cell/cell_plan.h"

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

}  // namespace
}  // namespace taskcell::live
