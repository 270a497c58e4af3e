#include "launcher/native/limit_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace taskcell::native {
namespace {

using testing::HasSubstr;
using Verdict = LimitCheck::Verdict;

constexpr cell::Limits kAsked = {uint64_t{64} << 20U, 64, 200, 256};

// One second, in which a cell was killed and refused forks.
Outcome Counted() {
  Outcome outcome;
  outcome.events.oom_kills = 1;
  outcome.events.pids_refusals = 3;
  outcome.wall_us = 1'000'000;
  return outcome;
}

LimitCheck Cpu(const Outcome& outcome) { return CheckLimits(kAsked, outcome).back(); }

TEST(LimitCheckTest, WhatTheKernelCountedHeld) {
  Outcome outcome = Counted();
  outcome.events.cpu_throttles = 2;
  std::vector<std::string> names;
  for (const LimitCheck& check : CheckLimits(kAsked, outcome)) {
    EXPECT_EQ(check.verdict, Verdict::kHeld) << check.name;
    names.emplace_back(check.name);
  }
  EXPECT_THAT(names, testing::ElementsAre("pids limit", "memory limit", "cpu limit"));
}

TEST(LimitCheckTest, WithoutACountMemoryAndPidsDidNotHold) {
  std::vector<LimitCheck> checks = CheckLimits(kAsked, Outcome());
  EXPECT_EQ(checks[0].verdict, Verdict::kNot);
  EXPECT_EQ(checks[1].verdict, Verdict::kNot);
}

TEST(LimitCheckTest, ABusyHostSaysNothingAboutTheCpuLimit) {
  Outcome outcome = Counted();
  outcome.events.cpu_us = 150'000;
  EXPECT_EQ(Cpu(outcome).verdict, Verdict::kUnknown);
  EXPECT_THAT(Cpu(outcome).text, HasSubstr("too busy"));
  outcome.events.cpu_throttles = 0;
  EXPECT_EQ(Cpu(outcome).verdict, Verdict::kUnknown);
}

TEST(LimitCheckTest, MoreTimeThanTheLimitGivesIsNoLimit) {
  Outcome outcome = Counted();
  outcome.events.cpu_throttles = 0;
  outcome.events.cpu_us = 800'000;
  EXPECT_EQ(Cpu(outcome).verdict, Verdict::kNot);
  EXPECT_THAT(Cpu(outcome).text, HasSubstr("800 ms of processor time in 1000 ms"));
}

}  // namespace
}  // namespace taskcell::native
