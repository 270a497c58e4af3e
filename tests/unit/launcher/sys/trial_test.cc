#include "launcher/sys/trial.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace taskcell::sys {
namespace {

TEST(TrialTest, ACallInAChildAnswersWithTheDeathOrWithNothing) {
  EXPECT_EQ(TryInChild([] { ::_exit(7); }), 0);
  EXPECT_EQ(TryInChild([] {}), 0);
  EXPECT_EQ(TryInChild([] { (void)::kill(::getpid(), SIGKILL); }), -SIGKILL);
}

}  // namespace
}  // namespace taskcell::sys
