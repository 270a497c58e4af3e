#include "probe/facts/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "tests/support/fixture.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::probe {
namespace {

// What is tried where something is needed to try it on.
TrialGround Ground() {
  TrialGround ground;
  ground.cgroup_directory = "/";  // no cgroup: the call is refused before that is seen
  ground.filesystems = "nodev overlay";
  return ground;
}

LiveFacts TryUnder(const std::vector<test::SyscallFault>& faults) {
  sys::Pipe pipe = sys::MakePipe().value();
  int status = test::InChild([&] {
    if (!test::InstallFaults(faults)) return 1;
    LiveFacts facts;
    facts.trials = TryFeatures(Ground());
    return sys::WriteAll(pipe.write_end.get(), ToJson(facts)).ok() ? 0 : 2;
  });
  pipe.write_end.Reset();
  EXPECT_EQ(status, 0);
  return ParseLiveFacts(sys::ReadAll(pipe.read_end.get(), 65536).value()).value();
}

struct MissingCall {
  int number;
  std::vector<const char*> features;  // that need it
  int argument = -1;
  uint32_t value = 0;
};

// A kernel, or a filter in its place, that answers ENOSYS or EPERM for each.
TEST(TrialsTest, EachFeatureIsSeenAbsentAndForbidden) {
  const MissingCall calls[] = {
      {SYS_openat2, {"openat2"}},
      {SYS_clone3, {"clone3", "clone-into-cgroup"}},
      {SYS_pidfd_open, {"pidfd"}},
      {SYS_close_range, {"close-range"}},
      {SYS_landlock_create_ruleset, {"landlock"}},
      {SYS_seccomp, {"seccomp-filter", "seccomp-notify"}, 0, SECCOMP_SET_MODE_FILTER},
      {SYS_seccomp, {"seccomp-notify"}, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER},
      {SYS_unshare, {"user-namespace"}},
      {SYS_fsopen, {"mount-api", "tmpfs", "overlay", "proc", "proc-subset"}},
      {SYS_mount_setattr, {"mount-setattr", "idmapped-mounts"}},
  };
  for (const MissingCall& call : calls) {
    for (int err : {ENOSYS, EPERM}) {
      LiveFacts facts = TryUnder({{call.number, err, call.argument, call.value}});
      for (std::string_view feature : call.features) {
        SCOPED_TRACE(feature);
        if (feature == "idmapped-mounts" && ::geteuid() != 0) continue;  // root's to try
        const Trial* trial = facts.Find(feature);
        ASSERT_NE(trial, nullptr);
        EXPECT_EQ(trial->outcome, err == ENOSYS ? Outcome::kAbsent : Outcome::kForbidden);
        EXPECT_EQ(trial->err, err);
      }
    }
  }
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
