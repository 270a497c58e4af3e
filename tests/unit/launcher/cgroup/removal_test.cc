#include "launcher/cgroup/removal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/temp_directory.h"

namespace taskcell::cgroup {
namespace {

pid_t StartSleeper() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::pause());
  return child;
}

// The signal that ended it; 0 while it lives.
int SignalOf(pid_t child, int options) {
  int status = 0;
  if (::waitpid(child, &status, options) != child) return 0;
  return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

// Directories as a kernel from before 5.14 has them.
class WithoutCgroupKillTest : public testing::Test {
 protected:
  WithoutCgroupKillTest() : tree_("removal") {}

  Status Kill() const {
    UniqueFd cgroup = sys::Open(tree_.path(), O_RDONLY | O_DIRECTORY).value();
    return KillAll(cgroup.get());
  }

  test::TempDirectory tree_;
};

TEST_F(WithoutCgroupKillTest, EachListedProcessIsEndedThereAndBelowAndNoOther) {
  const pid_t here = StartSleeper();
  const pid_t below = StartSleeper();
  const pid_t other = StartSleeper();
  tree_.Put("cgroup.procs", Text(here, "\n"));
  tree_.Put("cell/cgroup.procs", Text(below, "\n"));
  ASSERT_EQ(::access(tree_.At("cgroup.kill").c_str(), F_OK), -1);
  const Status killed = Kill();
  EXPECT_TRUE(killed.ok()) << killed.error().text;
  EXPECT_EQ(SignalOf(here, 0), SIGKILL);
  EXPECT_EQ(SignalOf(below, 0), SIGKILL);
  EXPECT_EQ(SignalOf(other, WNOHANG), 0);
  ::kill(other, SIGKILL);
  EXPECT_EQ(SignalOf(other, 0), SIGKILL);
  EXPECT_EQ(::access(tree_.At("cgroup.kill").c_str(), F_OK), -1) << "nothing is made";
}

// The twin: with the file nothing else is done.
TEST_F(WithoutCgroupKillTest, WhereItIsThereItServes) {
  const pid_t listed = StartSleeper();
  tree_.Put("cgroup.procs", Text(listed, "\n"));
  tree_.Put("cgroup.kill", "");
  EXPECT_TRUE(Kill().ok());
  EXPECT_EQ(tree_.Get("cgroup.kill"), "1");
  EXPECT_EQ(SignalOf(listed, WNOHANG), 0);
  ::kill(listed, SIGKILL);
  EXPECT_EQ(SignalOf(listed, 0), SIGKILL);
}

TEST_F(WithoutCgroupKillTest, AProcessThatIsGoneOrOfAnotherPidNamespaceIsPassedOver) {
  const pid_t gone = StartSleeper();
  ::kill(gone, SIGKILL);
  EXPECT_EQ(SignalOf(gone, 0), SIGKILL);
  tree_.Put("cgroup.procs", Text("0\n", gone, "\n"));
  EXPECT_TRUE(Kill().ok());
}

}  // namespace
}  // namespace taskcell::cgroup
