#include "launcher/sys/other_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "launcher/base/defer.h"

namespace taskcell::sys {
namespace {

TEST(OpenPidfdTest, ALivingProcessIsOpenedAndSignalled) {
  pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  Result<UniqueFd> pidfd = OpenPidfd(child);
  EXPECT_TRUE(pidfd.ok() && SignalPidfd(pidfd->get(), SIGTERM).ok());
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(OpenPidfdTest, AnIdThatOnlyAProcessGroupStillHasIsNoProcess) {
  int member_ends[2];
  ASSERT_EQ(::pipe2(member_ends, O_CLOEXEC), 0);
  pid_t leader = ::fork();
  if (leader == 0) {
    ::setpgid(0, 0);
    if (::fork() == 0) {
      char byte = 0;
      ::close(member_ends[1]);
      (void)!::read(member_ends[0], &byte, 1);  // ignoring: whatever ends the wait
    }
    ::_exit(0);
  }
  Defer let_the_member_end([&] {
    ::close(member_ends[0]);
    ::close(member_ends[1]);
  });
  ASSERT_EQ(::waitpid(leader, nullptr, 0), leader);
  ASSERT_EQ(::kill(-leader, 0), 0) << "control: the group is there";
  Result<UniqueFd> pidfd = OpenPidfd(leader);
  ASSERT_FALSE(pidfd.ok());
  EXPECT_EQ(pidfd.error().err, ESRCH);
}

TEST(OpenPidfdTest, AThreadIsNoProcess) {
  pid_t thread = 0;
  std::thread([&] {
    thread = ::gettid();
    Result<UniqueFd> pidfd = OpenPidfd(thread);
    EXPECT_TRUE(!pidfd.ok() && pidfd.error().err == ESRCH);
  }).join();
  ASSERT_NE(thread, ::getpid());
}

TEST(OpenPidfdTest, WhatIsNoIdAtAllIsAnError) {
  Result<UniqueFd> pidfd = OpenPidfd(-1);
  ASSERT_FALSE(pidfd.ok());
  EXPECT_EQ(pidfd.error().err, EINVAL);
}

}  // namespace
}  // namespace taskcell::sys
