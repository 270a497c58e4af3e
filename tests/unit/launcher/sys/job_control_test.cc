#include "launcher/sys/job_control.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace taskcell::sys {
namespace {

bool IsDefault(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

TEST(TakeSignalsTest, EveryIgnoredSignalGetsItsDefaultActionAndTwoAreBlocked) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int signal : {SIGHUP, SIGCHLD, SIGSYS, SIGRTMAX}) (void)::signal(signal, SIG_IGN);
    sigset_t all;
    (void)::sigfillset(&all);
    (void)::sigprocmask(SIG_BLOCK, &all, nullptr);
    bool done = TakeSignals().ok();
    for (int signal : {SIGHUP, SIGCHLD, SIGSYS, SIGRTMAX}) done = done && IsDefault(signal);
    sigset_t blocked;
    done = done && ::sigprocmask(SIG_BLOCK, nullptr, &blocked) == 0 &&
           ::sigismember(&blocked, SIGCHLD) == 1 && ::sigismember(&blocked, SIGPIPE) == 1 &&
           ::sigismember(&blocked, SIGTERM) == 0;
    ::_exit(done ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SignalAllTest, IsRefusedToAnyoneButProcessOne) {
  Status refused = SignalAll(0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, Kind::kInternal);
}

TEST(SignalGroupTest, GroupsZeroAndOneAreNobodysJob) {
  EXPECT_FALSE(SignalGroup(0, 0).ok());
  EXPECT_FALSE(SignalGroup(1, 0).ok());
  EXPECT_FALSE(SignalGroup(-5, 0).ok());
}

}  // namespace
}  // namespace taskcell::sys
