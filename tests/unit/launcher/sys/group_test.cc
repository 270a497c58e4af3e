#include "launcher/sys/group.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "launcher/base/text.h"

namespace taskcell::sys {
namespace {

GroupResult Shell(const std::string& command, int timeout_ms = 30'000, std::size_t limit = 4096) {
  Result<GroupResult> result = RunGroup({"/bin/sh", "-c", command}, timeout_ms, limit);
  EXPECT_TRUE(result.ok()) << result.error().text;
  return std::move(result).value();
}

TEST(RunGroupTest, OutputOfBothStreamsAndTheExitStatusComeBack) {
  GroupResult result = Shell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_EQ(result.exit.status, 7);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(Shell("kill -SEGV $$").exit.signal, SIGSEGV);
  EXPECT_EQ(Shell("cat").output, "");  // stdin is empty
}

TEST(RunGroupTest, PastTheTimeTheWholeGroupIsKilled) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // so that the orphan can be waited for
  GroupResult result = Shell("sleep 60 & echo $!; sleep 60", 3000);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit.signal, SIGKILL);
  int status = 0;
  auto orphan = static_cast<pid_t>(std::stol(result.output));
  // The shell waits for any child of its own, so it may have reaped this one while it died itself.
  if (::waitpid(orphan, &status, 0) == orphan) {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  EXPECT_EQ(::kill(orphan, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(RunGroupTest, ABackgroundProcessThatHoldsTheOutputDoesNotHoldUpTheCall) {
  auto start = std::chrono::steady_clock::now();
  GroupResult result = Shell("sleep 60 & echo done");
  EXPECT_EQ(result.output, "done\n");
  EXPECT_FALSE(result.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(25));
}

TEST(RunGroupTest, OutputIsKeptUpToTheLimitAndDroppedPastIt) {
  EXPECT_FALSE(Shell("head -c 4096 /dev/zero").truncated);
  GroupResult result = Shell("head -c 4097 /dev/zero; head -c 3000000 /dev/zero");
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.output.size(), 4096U);
  EXPECT_EQ(result.exit.status, 0);  // the program was not stopped by it
}

TEST(RunGroupTest, AProgramThatDoesNotExistIsAnError) {
  Result<GroupResult> result = RunGroup({"/nonexistent/program"}, 1000, 10);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().err, ENOENT);
}

}  // namespace
}  // namespace taskcell::sys
