// taskcell-launch --check: what it says of a host where cells can be had, and of ones where not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "tests/support/launch.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class CheckTest : public LaunchTest {
 protected:
  static std::vector<std::string> LinesOf(const Outcome& checked) {
    std::vector<std::string> lines;
    for (std::string_view line : Split(Trim(checked.out), '\n')) lines.emplace_back(line);
    return lines;
  }
};

TEST_F(CheckTest, EveryLinePassesWhereLimitsHold) {
  for (const Outcome& checked : {Launch({"--check"}), LaunchAsRoot({"--check"})}) {
    EXPECT_EQ(checked.status, 0) << checked.out << checked.err;
    EXPECT_THAT(LinesOf(checked), SizeIs(9));
    EXPECT_THAT(LinesOf(checked), Each(StartsWith("pass ")));
    EXPECT_EQ(checked.err, "");
  }
}

TEST_F(CheckTest, AUserWithoutDirectoriesIsToldOfEachLimitWhatToDo) {
  User stranger = *user_;
  stranger.uid = 4'000'000;
  stranger.gid = 4'000'000;
  RunOptions options;
  options.user = stranger;
  Outcome checked = test::Run(Command({"--check"}), options);
  EXPECT_EQ(checked.status, 1);
  for (const char* controller : {"memory", "pids", "cpu"})
    EXPECT_THAT(checked.out, HasSubstr(Text("FAIL  ", controller, " cgroup")));
  EXPECT_THAT(checked.out, HasSubstr("What to do: "));
  EXPECT_THAT(checked.out, HasSubstr("-     cell "));
  EXPECT_THAT(checked.out, HasSubstr("namespaces and root can be had"));
}

TEST_F(CheckTest, WithoutNamespacesTheCellFailsAndNoLimitIsCalledHeld) {
  RunOptions options;
  options.in_child = [] {
    constexpr uint32_t kFlags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD | SIGCHLD;
    if (!InstallFaults({{SYS_clone3, EPERM}, {SYS_clone, EPERM, 0, kFlags}})) ::_exit(90);
  };
  Outcome checked = Launch({"--check"}, options);
  EXPECT_EQ(checked.status, 1);
  EXPECT_THAT(checked.out, HasSubstr("FAIL  cell "));
  EXPECT_THAT(checked.out, HasSubstr("clone"));
  EXPECT_THAT(checked.out, Not(HasSubstr("memory limit")));
}

TEST_F(CheckTest, ThatThereIsNoLandlockIsSaidAndIsNoFailure) {
  RunOptions options;
  options.in_child = [] {
    if (!InstallFaults({{SYS_landlock_create_ruleset, ENOSYS}})) ::_exit(90);
  };
  Outcome checked = Launch({"--check"}, options);
  EXPECT_EQ(checked.status, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("-     landlock        not there: the kernel lacks it"));
  EXPECT_THAT(Launch({"--check"}).out, HasSubstr("pass  landlock        ABI "));  // control
}

TEST_F(CheckTest, TakesNoProgram) {
  Outcome checked = Launch({"--check", "--", "/bin/true"});
  EXPECT_EQ(checked.status, 125);
  EXPECT_THAT(checked.err, HasSubstr("--check"));
}

TEST_F(CheckTest, OutputThatCannotBeWrittenIsNoPass) {
  RunOptions options;
  options.in_child = [] {
    if (::close(1) != 0 || ::open("/dev/full", O_WRONLY) != 1) ::_exit(90);
  };
  EXPECT_EQ(Launch({"--check"}, options).status, 125);
}

}  // namespace
}  // namespace taskcell::test
