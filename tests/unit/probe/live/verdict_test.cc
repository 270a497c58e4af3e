#include "probe/live/verdict.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "probe/live/live.h"

namespace taskcell::live {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20U;

TEST(JudgeTest, OnlyBeingStoppedProvesALimit) {
  LimitEvidence evidence{100, 100, 100, false, Happened::kStopped};
  EXPECT_EQ(Judge(evidence), Verdict::kHeld);
  evidence.happened = Happened::kUnclear;
  EXPECT_EQ(Judge(evidence), Verdict::kUnknown) << "what is attested alone proves nothing";
  evidence.happened = Happened::kPast;
  EXPECT_EQ(Judge(evidence), Verdict::kNotHeld);
}

TEST(JudgeTest, AnotherLimitInForceIsNotTheOneAsked) {
  EXPECT_EQ(Judge({100, 100, 200, true, Happened::kStopped}), Verdict::kNotHeld);
  EXPECT_EQ(Judge({100, 100, kUnlimited, true, Happened::kUnclear}), Verdict::kNotHeld);
}

TEST(JudgeTest, WhatIsOutOfSightIsDecidedByWhatHappened) {
  EXPECT_EQ(Judge({100, 100, {}, false, Happened::kStopped}), Verdict::kHeld);
  EXPECT_EQ(Judge({100, 100, {}, false, Happened::kUnclear}), Verdict::kUnknown);
}

TEST(JudgeTest, TheEnginesWordDecidesNothing) {
  for (std::optional<uint64_t> word : {std::optional<uint64_t>(), std::optional<uint64_t>(7),
                                       std::optional<uint64_t>(kUnlimited)}) {
    EXPECT_EQ(Judge({100, word, 100, false, Happened::kStopped}), Verdict::kHeld);
    EXPECT_EQ(Judge({100, word, 100, false, Happened::kPast}), Verdict::kNotHeld);
    EXPECT_EQ(Judge({100, word, 100, false, Happened::kUnclear}), Verdict::kUnknown);
  }
}

TEST(LieTest, AWordThatIsNotInForce) {
  EXPECT_FALSE(IsLie({100, {}, 200, true, Happened::kPast})) << "nothing said";
  EXPECT_FALSE(IsLie({100, 100, 100, false, Happened::kStopped}));
  EXPECT_TRUE(IsLie({100, 100, kUnlimited, true, Happened::kUnclear}));
  EXPECT_TRUE(IsLie({100, kUnlimited, 100, false, Happened::kStopped}));
  EXPECT_TRUE(IsLie({100, 101, 100, false, Happened::kStopped}));
  EXPECT_FALSE(IsLie({100, kUnlimited, kUnlimited, true, Happened::kPast})) << "bad, but honest";
  EXPECT_TRUE(IsLie({100, 100, {}, false, Happened::kPast}));
  EXPECT_FALSE(IsLie({100, kUnlimited, {}, false, Happened::kPast}));
}

TEST(LieTest, ThePagesOfTheKernelAreNone) {
  EXPECT_FALSE(IsLie({64 * kMiB + 5, 64 * kMiB + 5, 64 * kMiB, false, Happened::kStopped}));
  EXPECT_TRUE(IsLie({64 * kMiB, 64 * kMiB, 65 * kMiB, false, Happened::kStopped}));
}

// A trial in which everything went as it should.
class LimitsTest : public testing::Test {
 protected:
  LimitsTest() {
    asked_.limits.cpu_millis = 500;
    for (cell::LimitsSeen* seen : {&trial_.seen.inside.limits, &trial_.seen.outside.limits}) {
      seen->memory_bytes = seen->memory_and_swap_bytes = 64 * kMiB;
      seen->pids = 64;
      seen->cpu_quota_us = 50'000;
      seen->cpu_period_us = 100'000;
    }
    trial_.seen.inside.witness_nofile = 256;
    trial_.seen.inside.tmpfs = {{"/tmp", 8 * kMiB}, {"/workspace", 8 * kMiB}};
    trial_.findings = {{Payload::kPids, "", 62, EAGAIN},
                       {Payload::kFiles, "", 256, EMFILE},
                       {Payload::kTmpfs, "/tmp", 8 * kMiB, ENOSPC},
                       {Payload::kTmpfs, "/workspace", 8 * kMiB, ENOSPC},
                       {Payload::kCpu, "", 260'000, 0, 0, 510'000},
                       {Payload::kMemory, "", 62 * kMiB, 0, SIGKILL}};
    trial_.events = cgroup::Events{1, 1, {}, {}, 5};
    trial_.end.outcome = gate::JobOutcome::kExited;
  }

  Finding& Found(Payload payload) {
    for (Finding& finding : trial_.findings)
      if (finding.payload == payload) return finding;
    std::abort();
  }

  // The rows that are not held or not known, "memory:not_held swap:unknown".
  std::string Rest() {
    std::string rest;
    for (const Row& row : JudgeLimits(asked_, host_, trial_)) {
      if (row.verdict == Verdict::kHeld) {
        EXPECT_EQ(row.why, "") << row.limit;
        continue;
      }
      EXPECT_NE(row.why, "") << row.limit;
      rest += (rest.empty() ? "" : " ") + row.limit + ":" + std::string(Name(row.verdict));
    }
    return rest;
  }

  void Mismatch(const char* field) { trial_.mismatches.push_back({field, "a", "b", true}); }

  Asked asked_;
  HostFacts host_{false, 2};
  Trial trial_;
};

TEST_F(LimitsTest, AllHold) { EXPECT_EQ(Rest(), ""); }

TEST_F(LimitsTest, ForksPastTheLimit) {
  Found(Payload::kPids).reached = 63;
  EXPECT_EQ(Rest(), "pids:not_held");
  Found(Payload::kPids) = {Payload::kPids, "", 80, 0};
  EXPECT_EQ(Rest(), "pids:not_held");
}

TEST_F(LimitsTest, AForkRefusedBySomethingElseTellsNothing) {
  trial_.events->pids_refusals = 0;
  EXPECT_EQ(Rest(), "pids:unknown");
  trial_.events->pids_refusals = 1;
  Found(Payload::kPids).reached = 61;
  EXPECT_EQ(Rest(), "pids:unknown");
  Found(Payload::kPids) = {Payload::kPids, "", 62, ENOMEM};
  EXPECT_EQ(Rest(), "pids:unknown");
}

TEST_F(LimitsTest, MemoryPastTheLimitIsNotHeldNorIsSwap) {
  Found(Payload::kMemory) = {Payload::kMemory, "", 64 * kMiB + 4096, 0, SIGKILL};
  EXPECT_EQ(Rest(), "memory:not_held swap:not_held");
  Found(Payload::kMemory) = {Payload::kMemory, "", 96 * kMiB, 0, 0};
  EXPECT_EQ(Rest(), "memory:not_held swap:not_held");
}

TEST_F(LimitsTest, AKillThatTheKernelDidNotCountTellsNothing) {
  trial_.events->oom_kills = 0;
  EXPECT_EQ(Rest(), "memory:unknown swap:unknown");
}

TEST_F(LimitsTest, AProgramThatWasKilledAsAWholeRanOutOfMemory) {
  trial_.findings.pop_back();
  trial_.end.exit.signal = SIGKILL;
  EXPECT_EQ(Rest(), "");
  trial_.events->oom_kills = 0;
  EXPECT_EQ(Rest(), "memory:unknown swap:unknown");
}

TEST_F(LimitsTest, SwapOnTopIsNotHeldThoughTheProgramWasKilled) {
  trial_.seen.outside.limits.memory_and_swap_bytes = cell::LimitsSeen::kUnlimited;
  Mismatch("limits.memory_and_swap");
  EXPECT_EQ(Rest(), "swap:not_held");
}

TEST_F(LimitsTest, AnotherMemoryLimitIsNoOtherSwapLimit) {
  for (cell::LimitsSeen* seen : {&trial_.seen.inside.limits, &trial_.seen.outside.limits})
    seen->memory_bytes = seen->memory_and_swap_bytes = 128 * kMiB;
  Mismatch("limits.memory");
  Mismatch("limits.memory_and_swap");
  EXPECT_EQ(Rest(), "memory:not_held");
}

TEST_F(LimitsTest, MoreProcessorTimeThanAsked) {
  Found(Payload::kCpu).reached = MostCpuUs(500, 510'000, 2) + 1;
  EXPECT_EQ(Rest(), "cpu:not_held");
  Found(Payload::kCpu).reached -= 1;
  EXPECT_EQ(Rest(), "");
}

TEST_F(LimitsTest, ProcessorTimeThatNothingHeldBackTellsNothing) {
  trial_.events->cpu_throttles = 0;
  EXPECT_EQ(Rest(), "cpu:unknown") << "the host was busy";
  trial_.events->cpu_throttles.reset();
  EXPECT_EQ(Rest(), "cpu:unknown");
  trial_.events->cpu_throttles = 5;
  host_.processors = 1;
  asked_.limits.cpu_millis = 1000;
  EXPECT_EQ(Rest(), "cpu:unknown") << "there is no more than that";
}

TEST_F(LimitsTest, WithoutCountersWhatTheyWouldProveIsUnknown) {
  trial_.events.reset();
  EXPECT_EQ(Rest(), "memory:unknown swap:unknown pids:unknown cpu:unknown");
}

TEST_F(LimitsTest, DescriptorsAndFileSystems) {
  Found(Payload::kFiles).reached = 257;
  Found(Payload::kTmpfs).reached = 8 * kMiB + 4096;
  EXPECT_EQ(Rest(), "files:not_held tmpfs:/tmp:not_held");
  Found(Payload::kFiles) = {Payload::kFiles, "", 100, ENFILE};
  Found(Payload::kTmpfs) = {Payload::kTmpfs, "/tmp", 4 * kMiB, ENOSPC};
  EXPECT_EQ(Rest(), "files:unknown tmpfs:/tmp:unknown");
}

TEST_F(LimitsTest, WhatWasNotTriedIsUnknownWithTheReason) {
  trial_.findings.clear();
  trial_.end.outcome = gate::JobOutcome::kRefused;
  trial_.end.refusal = {"exec", ENOENT, "no such program"};
  std::vector<Row> rows = JudgeLimits(asked_, host_, trial_);
  ASSERT_EQ(rows.size(), 7U);
  for (const Row& row : rows) {
    EXPECT_EQ(row.verdict, Verdict::kUnknown) << row.limit;
    EXPECT_NE(row.why.find("no such program"), row.why.npos) << row.why;
  }
}

TEST_F(LimitsTest, AnEnginesWordIsComparedWithWhatIsInForce) {
  trial_.reported = probe::ReportedLimits{64 * kMiB, 64 * kMiB, 64, 500, 256, {{"/tmp", 8 * kMiB}}};
  for (const Row& row : JudgeLimits(asked_, host_, trial_)) EXPECT_FALSE(row.lie) << row.limit;
  trial_.reported->pids = probe::kReportedUnlimited;
  trial_.reported->memory_and_swap_bytes = 128 * kMiB;
  for (const Row& row : JudgeLimits(asked_, host_, trial_))
    EXPECT_EQ(row.lie, row.limit == "pids" || row.limit == "swap") << row.limit;
}

gate::JobEnd EndedAs(cell::ExitReason reason) {
  gate::JobEnd end;
  end.outcome = gate::JobOutcome::kExited;
  end.exit.reason = reason;
  return end;
}

TEST(OutputTest, AFloodThatWasEndedIsHeld) {
  Asked asked;
  Trial trial;
  trial.output_bytes = asked.output_bytes + 1;
  trial.end = EndedAs(cell::ExitReason::kCancelled);
  trial.end.cancelled = true;
  EXPECT_EQ(JudgeOutput(asked, trial).verdict, Verdict::kHeld);
  trial.end.outcome = gate::JobOutcome::kOverdue;
  EXPECT_EQ(JudgeOutput(asked, trial).verdict, Verdict::kNotHeld);
  trial.end = EndedAs(cell::ExitReason::kExited);
  EXPECT_EQ(JudgeOutput(asked, trial).verdict, Verdict::kNotHeld);
  trial.output_bytes = 5;
  EXPECT_EQ(JudgeOutput(asked, trial).verdict, Verdict::kUnknown);
}

TEST(DeadlineTest, AJobThatWasEndedInTimeIsHeld) {
  Asked asked;
  Trial trial;
  for (cell::ExitReason reason : {cell::ExitReason::kDeadline, cell::ExitReason::kCancelled}) {
    trial.end = EndedAs(reason);
    trial.end.exit.wall_us = 151'000;
    EXPECT_EQ(JudgeDeadline(asked, trial).verdict, Verdict::kHeld);
  }
  trial.end.exit.wall_us = 1'150'001;
  EXPECT_EQ(JudgeDeadline(asked, trial).verdict, Verdict::kNotHeld);
  trial.end.outcome = gate::JobOutcome::kOverdue;
  EXPECT_EQ(JudgeDeadline(asked, trial).verdict, Verdict::kNotHeld);
  trial.end = EndedAs(cell::ExitReason::kExited);
  EXPECT_EQ(JudgeDeadline(asked, trial).verdict, Verdict::kUnknown) << "it did not stay";
  trial.findings = {{Payload::kLinger, "", 2150}};
  EXPECT_EQ(JudgeDeadline(asked, trial).verdict, Verdict::kNotHeld);
}

TEST(OverallTest, TheWorstOfAllDecides) {
  Report report;
  EXPECT_EQ(Overall(report), Verdict::kUnknown) << "nothing tried";
  Row held;
  held.verdict = Verdict::kHeld;
  report.rows = {held, held};
  EXPECT_EQ(Overall(report), Verdict::kHeld);
  report.rows[0].verdict = Verdict::kUnknown;
  EXPECT_EQ(Overall(report), Verdict::kUnknown);
  report.rows[1].verdict = Verdict::kNotHeld;
  EXPECT_EQ(Overall(report), Verdict::kNotHeld);
  report.rows = {held};
  report.rows[0].lie = true;
  EXPECT_EQ(Overall(report), Verdict::kNotHeld);
  report.rows = {held};
  report.differences = {"x"};
  EXPECT_EQ(Overall(report), Verdict::kNotHeld);
}

TEST(OverallTest, ARefusalOfLimitsIsAnAnswerAndAnyOtherIsNone) {
  Report report;
  report.refusal = Error(Kind::kUnsupported, "x").Coded("resource_limits_unenforced");
  EXPECT_EQ(Overall(report), Verdict::kNotHeld);
  report.refusal = Error(Kind::kUnsupported, "x").Coded("docker_unreachable");
  EXPECT_EQ(Overall(report), Verdict::kUnknown);
  Row held;
  held.verdict = Verdict::kHeld;
  report.rows = {held};
  EXPECT_EQ(Overall(report), Verdict::kUnknown) << "the table is not whole";
}

}  // namespace
}  // namespace taskcell::live
