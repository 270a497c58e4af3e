#include "launcher/cell/cpu_list.h"

#include <gtest/gtest.h>

namespace taskcell::cell {
namespace {

TEST(CpuListTest, IsInOrderWithRangesAndEachOnce) {
  EXPECT_EQ(NormalCpuList("0"), "0");
  EXPECT_EQ(NormalCpuList("3,0-1"), "0-1,3");
  EXPECT_EQ(NormalCpuList("0,1,2,2"), "0-2");
  EXPECT_EQ(NormalCpuList("5-7,6"), "5-7");
  EXPECT_EQ(NormalCpuList("8191"), "8191");
}

TEST(CpuListTest, WhatIsNoListIsNone) {
  for (const char* text :
       {"", ",", "0,", "a", "-1", "1-", "2-1", "8192", "0-8192", "0 1", "0x1", "1--2"})
    EXPECT_EQ(NormalCpuList(text), std::nullopt) << text;
}

TEST(CpuListTest, OneThatIsTooLongIsNone) {
  std::string all_even = "0";
  for (int cpu = 2; cpu <= 8190; cpu += 2) all_even += "," + std::to_string(cpu);
  EXPECT_EQ(NormalCpuList(all_even), std::nullopt);
  std::string repeated = "0";
  while (repeated.size() + 2 <= kMaxCpuListBytes) repeated += ",0";
  EXPECT_EQ(NormalCpuList(repeated), "0");
}

}  // namespace
}  // namespace taskcell::cell
