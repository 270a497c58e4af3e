// Native cells on kernels and under filters that lack a call: they work without it or refuse by
// name, and never run weaker in silence.
#include <gmock/gmock.h>
#include <linux/landlock.h>
#include <sys/syscall.h>

#include <cerrno>

#include "tests/support/launch.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

class DegradedNativeTest : public LaunchTest {
 protected:
  Outcome Without(const std::vector<SyscallFault>& faults) {
    RunOptions options;
    options.in_child = [&faults] {
      if (!InstallFaults(faults)) ::_exit(90);
    };
    return Launch({"--", "/bin/echo", "ran"}, options);
  }
};

TEST_F(DegradedNativeTest, WithoutClone3CloneServes) {
  Outcome ran = Without({{SYS_clone3, ENOSYS}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "ran\n");
}

TEST_F(DegradedNativeTest, AClone3ThatIsForbiddenIsNotWorkedAround) {
  Outcome ran = Without({{SYS_clone3, EPERM}});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("clone3"));
  EXPECT_EQ(ran.out, "");
}

TEST_F(DegradedNativeTest, WithoutOpenat2TheLaunchIsRefused) {
  for (int err : {ENOSYS, EPERM}) {
    Outcome ran = Without({{SYS_openat2, err}});
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.err, HasSubstr("openat2"));
    EXPECT_EQ(ran.out, "");
  }
}

TEST_F(DegradedNativeTest, WithoutLandlockTheCellRunsAndItsOtherWallsHold) {
  for (int err : {ENOSYS, EOPNOTSUPP}) {
    Outcome ran = Without({{SYS_landlock_create_ruleset, err}});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "ran\n");
  }
}

TEST_F(DegradedNativeTest, WithoutTheNewMountCallsTheLaunchIsRefusedByStage) {
  for (int number : {SYS_fsopen, SYS_open_tree, SYS_move_mount, SYS_mount_setattr}) {
    Outcome ran = Without({{number, ENOSYS}});
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.err, HasSubstr("stage '"));
    EXPECT_EQ(ran.out, "");
  }
}

}  // namespace
}  // namespace taskcell::test
