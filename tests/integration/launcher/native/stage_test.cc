// Every stage of the cell's set-up is made to fail, and must say so by name.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <linux/sockios.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <cerrno>

#include "tests/support/hung_files.h"
#include "tests/support/launch.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

struct StageRow {
  const char* stage;
  SyscallFault fault;
  bool as_root = false;
  bool rootfs = false;
};

class StageTest : public LaunchTest {
 protected:
  void ExpectFailure(const StageRow& row) {
    SCOPED_TRACE(row.stage);
    std::vector<std::string> arguments = {"--", "/bin/true"};
    if (row.rootfs) arguments = {"--rootfs=" + rootfs_, "--", "/launch", "--version"};
    RunOptions options;
    Outcome control = row.as_root ? LaunchAsRoot(arguments) : Launch(arguments);
    ASSERT_EQ(control.status, 0) << control.err;
    options.in_child = [&row] {
      if (!InstallFaults({row.fault})) ::_exit(90);
    };
    Outcome ran = row.as_root ? LaunchAsRoot(arguments, options) : Launch(arguments, options);
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.err, HasSubstr(std::string("stage '") + row.stage + "'"));
    EXPECT_EQ(ran.out, "");
  }

  std::string rootfs_;
};

TEST_F(StageTest, EachStageIsNamedWhenItFails) {
  rootfs_ = MakeRootfs();
  const StageRow rows[] = {
      {"cgroup", {SYS_unshare, EPERM}},
      {"mount propagation", {SYS_mount, EACCES}},
      {"mount sources", {SYS_open_tree, EACCES}},
      {"ids", {SYS_setgroups, EPERM}, true},
      {"root", {SYS_fsopen, EACCES}},
      {"proc", {SYS_fsopen, EACCES}, false, true},
      // The only write of four bytes that root's launch makes is the last of the sysctls.
      {"sysctls", {SYS_write, EPERM, 2, 4}, true},
      {"devices", {SYS_symlinkat, EPERM}, false, true},
      {"network", {SYS_ioctl, EPERM, 1, SIOCSIFFLAGS}},
      {"hostname", {SYS_sethostname, EPERM}},
      {"pivot", {SYS_pivot_root, EPERM}},
      {"privileges", {SYS_capset, EPERM}},
      {"descriptors", {SYS_fcntl, EACCES, 1, F_SETFD}},
      {"exec", {SYS_execveat, EACCES}},
  };
  for (const StageRow& row : rows) ExpectFailure(row);
}

TEST_F(StageTest, AMissingMountPointOfARootfsIsStageMounts) {
  std::string rootfs = MakeRootfs();
  std::filesystem::remove(rootfs + "/workspace");
  Outcome ran = Launch({"--rootfs", rootfs, "--", "/launch", "--version"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, testing::AllOf(HasSubstr("stage 'mounts'"), HasSubstr("/workspace"),
                                      HasSubstr("mkdir")));
  EXPECT_FALSE(std::filesystem::exists(rootfs + "/workspace"));
}

TEST_F(StageTest, IdMapsThatTheKernelRefusesAreNamed) {
  // Root of a user namespace with one id cannot map nobody.
  RunOptions options;
  options.user = user_;
  Outcome ran = test::Run(
      {"/usr/bin/unshare", "-Ur", Program("taskcell-launch"), "--", "/bin/true"}, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("id maps"));
}

// A container's masks. A kernel that gives the processes part nevertheless is asked for it.
TEST_F(StageTest, ACoveredProcIsExplained) {
  RunOptions covered;
  covered.in_child = [user = *user_] {
    if (!EnterOwnMounts() || ::mount("/dev/null", "/proc/version", nullptr, MS_BIND, nullptr) != 0)
      ::_exit(90);
    EnterDelegatedCgroup(user.uid);
    if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
        ::setresuid(user.uid, user.uid, user.uid) != 0)
      ::_exit(91);
  };
  auto gives = [&](const char* options) {
    return test::Run({"/usr/bin/unshare", "-Urmpf", "/bin/mount", "-t", "proc", "-o", options,
                      "proc", "/proc"},
                     covered)
               .status == 0;
  };
  EXPECT_FALSE(gives("rw"));
  const bool gives_part = gives("subset=pid");
  for (const char* choice : {"--proc=full", "--proc=pids"}) {
    SCOPED_TRACE(choice);
    const std::string report = scratch_ + "/report.json";
    Outcome ran = test::Run(Command({choice, "--report=" + report, "--", "/bin/true"}), covered);
    if (gives_part) {
      EXPECT_EQ(ran.status, 0) << ran.err;
      EXPECT_THAT(ReadText(report), HasSubstr(R"("proc":"subset")"));
      continue;
    }
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.err, testing::AllOf(HasSubstr("stage 'proc'"), HasSubstr("covered in places"),
                                        HasSubstr("unmask=ALL")));
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("seccomp")));
  }
}

TEST_F(StageTest, AppArmorIsBlamedOnlyWhereItRestricts) {
  RunOptions options;
  options.in_child = [] {
    if (!InstallFaults(
            {{SYS_mount, EACCES}, {SYS_move_mount, EACCES}, {SYS_mount_setattr, EACCES}}))
      ::_exit(90);
  };
  Outcome ran = Launch({"--", "/bin/true"}, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("mount"));
  bool restricted =
      std::ifstream("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").get() == '1';
  EXPECT_EQ(ran.err.find("AppArmor") != std::string::npos, restricted);
}

}  // namespace
}  // namespace taskcell::test
