#include "gateway/egress/purse.h"

#include <gtest/gtest.h>

#include <limits>

namespace taskcell::gateway {
namespace {

TEST(PurseTest, WhatIsUnderWayIsHeldBackAtTheCostOfTheDearestUntilNow) {
  Purse purse;
  purse.Know(20, 0);
  EXPECT_EQ(purse.Hold(1), 1U) << "nothing is known of what one costs";
  EXPECT_EQ(purse.Hold(2), 2U);
  purse.Pay(1, 8);
  EXPECT_EQ(purse.Hold(1), 8U);
  EXPECT_EQ(purse.Hold(1), 8U) << "8 are paid and 10 held";
  EXPECT_EQ(purse.Hold(1), std::nullopt) << "and now 18";
  purse.Pay(2, 8);
  EXPECT_EQ(purse.Hold(1), std::nullopt) << "16 are paid and 16 held";
  purse.Pay(8, 0);
  purse.Pay(8, 0);
  EXPECT_EQ(purse.Hold(1), 8U) << "those cost nothing in the end";
  EXPECT_EQ(purse.Hold(1), std::nullopt);
}

TEST(PurseTest, NothingOverflows) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  Purse purse;
  purse.Know(kMost, 0);
  purse.Pay(0, kMost - 1);
  EXPECT_EQ(purse.Hold(kMost), kMost);
  EXPECT_EQ(purse.Hold(1), std::nullopt);
  purse.Pay(kMost, kMost);
  EXPECT_EQ(purse.Hold(0), std::nullopt) << "what was paid stays at the most there is";
}

}  // namespace
}  // namespace taskcell::gateway
