#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "launcher/native/id_maps.h"
#include "launcher/native/namespace_fault.h"
#include "launcher/native/report.h"
#include "launcher/native/stage.h"

namespace taskcell::native {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FrozenGroupsTest, OnlyTheOwnGroupMayStay) {
  EXPECT_TRUE(CheckFrozenGroups({}, 1000).ok());
  EXPECT_TRUE(CheckFrozenGroups({1000}, 1000).ok());
  Status refused = CheckFrozenGroups({1000, 42, 27}, 1000);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text, HasSubstr("42, 27"));
  EXPECT_THAT(refused.error().text, HasSubstr("--userns=subids"));
}

TEST(ChildReportTest, AFailureKeepsStageErrnoAndAsMuchTextAsFits) {
  Error error(Kind::kDenied, "begin" + std::string(2000, 'x') + "end", EACCES);
  ChildReport report = ReportFailure(Stage::kMounts, error);
  Error back = ErrorOf(report);
  EXPECT_EQ(back.err, EACCES);
  EXPECT_EQ(back.kind, Kind::kDenied);
  EXPECT_THAT(back.text, HasSubstr("stage 'mounts'"));
  EXPECT_THAT(back.text, HasSubstr("begin" + std::string(240, 'x') + " ... xxx"));
  EXPECT_THAT(back.text, testing::EndsWith("xxxend"));
  EXPECT_EQ(back.text.size(),
            std::string("cell set-up, stage 'mounts': ").size() + report.text.size() - 1);
  Error fits(Kind::kDenied, std::string(report.text.size() - 1, 'y'));
  EXPECT_THAT(ErrorOf(ReportFailure(Stage::kMounts, fits)).text, HasSubstr(fits.text));
}

TEST(ChildReportTest, AnUnterminatedTextOrUnknownKindIsTakenAsIs) {
  ChildReport report;
  report.text.fill('y');
  report.kind = 200;
  Error error = ErrorOf(report);
  EXPECT_EQ(error.kind, Kind::kInternal);
  EXPECT_THAT(error.text, HasSubstr(std::string(report.text.size(), 'y')));
}

TEST(StageTest, EveryStageHasItsOwnName) {
  std::vector<std::string_view> names;
  for (int stage = 0; stage <= static_cast<int>(Stage::kExec); ++stage)
    names.push_back(Name(static_cast<Stage>(stage)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_THAT(names, Not(testing::Contains("unknown")));
}

TEST(NamespaceFaultTest, NoSpaceNeverMeansTheDisk) {
  Error error = ExplainNamespaceFault(Error(Kind::kSystem, "clone3: No space left", ENOSPC));
  EXPECT_THAT(error.text, Not(HasSubstr("No space left")));
  EXPECT_THAT(error.text, HasSubstr("max_user_namespaces"));
}

TEST(NamespaceFaultTest, OtherFaultsStayAsTheyAre) {
  EXPECT_EQ(ExplainNamespaceFault(Error(Kind::kSystem, "x", EIO)).text, "x");
}

TEST(ReportTest, TheOutcomeIsOneJsonLine) {
  cell::CellPlan plan;
  plan.run_id = "00";
  plan.limits = {67108864, 32, 500, 1024};
  plan.limits.io_weight = 7;
  plan.limits.cpu_set = "0";
  plan.mounts = {{"/a", "/r"}, {"/b", "/w"}};
  plan.mounts[1].writable = true;
  CellFacts facts{MapWay::kSubids, true};
  facts.landlock_abi = 6;
  Outcome outcome;
  outcome.exit.signal = 9;
  outcome.events.oom_kills = 1;
  outcome.events.peak_memory_bytes = 5;
  outcome.wall_us = 7;
  EXPECT_EQ(
      ReportOutcome(plan, facts, outcome),
      R"({"run_id":"00","status":137,"exit":null,"signal":9,"timed_out":false,"output_exceeded":false,"oom_kills":1,)"
      R"("pids_refusals":0,"peak_memory_bytes":5,"cpu_us":0,"wall_us":7,)"
      R"("limits":{"memory_bytes":67108864,"pids":32,"cpu_millis":500,"file_bytes":null,"output_bytes":null,)"
      R"("io_weight":7,"cpu_set":"0"},)"
      R"("seccomp":{"profile":"default","left_open":[]},"landlock_abi":6,"writable_mounts":["/w"],"proc":"subset",)"
      R"("keyring":"own","uid_separation":"subordinate"})"
      "\n");
}

TEST(ReportTest, AProgramThatDidNotStartHasItsStageAndText) {
  Outcome outcome;
  outcome.refusal = cell::Refusal{"exec", ENOENT, "no \"p\""};
  const std::string report = ReportOutcome({}, {}, outcome);
  const std::string end =
      R"("status":127,"exit":null,"signal":null,"timed_out":false,"output_exceeded":false,)"
      R"("not_started":{"stage":"exec","text":"no \"p\""},"oom_kills":0,)";
  EXPECT_TRUE(report.starts_with(R"({"run_id":"",)" + end)) << report;
}

TEST(ReportTest, ALaunchThatFailedHasKindCodeAndText) {
  Error error(Kind::kDenied, "not \"yours\"", EACCES);
  EXPECT_EQ(ReportError(error),
            R"({"status":125,"error":{"kind":"denied","code":"","text":"not \"yours\""}})"
            "\n");
  error.code = "resource_limits_unenforced";
  EXPECT_THAT(ReportError(error), HasSubstr(R"("code":"resource_limits_unenforced")"));
}

TEST(ExitStatusTest, TheDocumentedNumbers) {
  Outcome outcome;
  outcome.exit.code = 7;
  EXPECT_EQ(ExitStatus(outcome), 7);
  outcome.exit.signal = 6;
  EXPECT_EQ(ExitStatus(outcome), 134);
  outcome.refusal = cell::Refusal{"exec", ENOENT, ""};
  EXPECT_EQ(ExitStatus(outcome), 127);
  outcome.refusal = cell::Refusal{"exec", EACCES, ""};
  EXPECT_EQ(ExitStatus(outcome), 126);
  outcome.refusal = cell::Refusal{"landlock", EACCES, ""};
  EXPECT_EQ(ExitStatus(outcome), 125);
  outcome.timed_out = true;
  EXPECT_EQ(ExitStatus(outcome), 124);
}

}  // namespace
}  // namespace taskcell::native
