#include "probe/facts/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>

#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "tests/support/fixture.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::probe {
namespace {

LiveFacts TryUnder(const std::vector<test::SyscallFault>& faults) {
  sys::Pipe pipe = sys::MakePipe().value();
  int status = test::InChild([&] {
    if (!test::InstallFaults(faults)) return 1;
    LiveFacts facts;
    facts.trials = TryFeatures({});
    return sys::WriteAll(pipe.write_end.get(), ToJson(facts)).ok() ? 0 : 2;
  });
  pipe.write_end.Reset();
  EXPECT_EQ(status, 0);
  return ParseLiveFacts(sys::ReadAll(pipe.read_end.get(), 65536).value()).value();
}

Outcome OutcomeUnder(int number, int err, std::string_view feature) {
  LiveFacts facts = TryUnder({{number, err}});
  const Trial* trial = facts.Find(feature);
  EXPECT_NE(trial, nullptr) << feature;
  return trial == nullptr ? Outcome::kUnknown : trial->outcome;
}

// A kernel, or a filter in its place, that answers ENOSYS or EPERM for each.
TEST(TrialsTest, EachFeatureIsSeenAbsentAndForbidden) {
  struct Case {
    int number;
    const char* feature;
  };
  for (const Case& each : {Case{SYS_openat2, "openat2"}, Case{SYS_pidfd_open, "pidfd"},
                           Case{SYS_close_range, "close-range"}, Case{SYS_clone3, "clone3"}}) {
    EXPECT_EQ(OutcomeUnder(each.number, ENOSYS, each.feature), Outcome::kAbsent) << each.feature;
    EXPECT_EQ(OutcomeUnder(each.number, EPERM, each.feature), Outcome::kForbidden) << each.feature;
  }
  EXPECT_EQ(OutcomeUnder(SYS_landlock_create_ruleset, ENOSYS, "landlock"), Outcome::kAbsent);
}

TEST(TrialsTest, ForbiddenNamespacesLeaveTheRestUntried) {
  LiveFacts facts = TryUnder({{SYS_unshare, EPERM}});
  EXPECT_EQ(facts.Find("user-namespace")->outcome, Outcome::kForbidden);
  EXPECT_EQ(facts.Find("user-namespace")->err, EPERM);
  EXPECT_EQ(facts.Find("mount-api")->outcome, Outcome::kUnknown);
  EXPECT_EQ(facts.Find("user-namespace-depth")->detail, "not even one");
  facts = TryUnder({{SYS_unshare, ENOSPC}});
  EXPECT_EQ(facts.Find("user-namespace")->err, ENOSPC);
}

TEST(TrialsTest, EveryFeatureIsNamedOnceAndTheProcessIsAsBefore) {
  LiveFacts facts;
  facts.trials = TryFeatures({});
  EXPECT_EQ(facts.trials.size(), 17U);
  EXPECT_EQ(facts.Find("openat2")->outcome, Outcome::kWorks);
  EXPECT_EQ(facts.Find("seccomp-filter")->outcome, Outcome::kWorks);
  for (const Trial& trial : facts.trials)
    EXPECT_EQ(facts.Find(trial.feature), &trial) << trial.feature;
  if (facts.Find("user-namespace")->outcome == Outcome::kWorks) {
    EXPECT_THAT(facts.Find("user-namespace-depth")->detail,
                testing::MatchesRegex("[0-9]+ more levels"));
  }
  EXPECT_TRUE(sys::AssertSingleThread().ok());
  EXPECT_EQ(sys::ReadFile(AT_FDCWD, "/proc/self/status", 65536).value().find("Seccomp:\t2"),
            std::string::npos);
}

TEST(ErrorNameTest, NamesErrnos) {
  EXPECT_EQ(ErrorName(EPERM), "EPERM");
  EXPECT_EQ(ErrorName(0), "");
  EXPECT_EQ(ErrorName(99999), "");
}

}  // namespace
}  // namespace taskcell::probe
