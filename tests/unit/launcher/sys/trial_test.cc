#include "launcher/sys/trial.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>

#include "tests/support/fixture.h"

namespace taskcell::sys {
namespace {

TEST(TrialTest, ATrialAnswersWithTheErrnoOrWithNothing) {
  EXPECT_EQ(TrySyscall(SYS_getpid), 0);
  EXPECT_EQ(TrySyscall(SYS_close, ~uint64_t{0}), EBADF);
  EXPECT_EQ(TryOpen("/proc/self/status", O_RDONLY), 0);
  EXPECT_EQ(TryOpen("/proc/self/nothing-like-it", O_RDONLY), ENOENT);
}

TEST(TrialTest, AChildThatCameOfATrialIsReaped) {
  // In a process that has no other children.
  EXPECT_EQ(test::InChild([] {
              if (TryClone(0) != 0) return 1;
              return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace taskcell::sys
