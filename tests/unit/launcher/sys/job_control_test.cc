#include "launcher/sys/job_control.h"

#include <gtest/gtest.h>

namespace taskcell::sys {
namespace {

TEST(SignalAllTest, IsRefusedToAnyoneButProcessOne) {
  Status refused = SignalAll(0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, Kind::kInternal);
}

TEST(SignalGroupTest, GroupsZeroAndOneAreNobodysJob) {
  EXPECT_FALSE(SignalGroup(0, 0).ok());
  EXPECT_FALSE(SignalGroup(1, 0).ok());
  EXPECT_FALSE(SignalGroup(-5, 0).ok());
}

}  // namespace
}  // namespace taskcell::sys
