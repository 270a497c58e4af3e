// What a launch costs in system calls, which do not depend on how busy the machine is. The times
// are compared by ./dev bench.
#include <grp.h>
#include <unistd.h>

#include "tests/support/count_calls.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

// 1105 with limits on three v1 hierarchies and Landlock. Kernels with more capabilities to drop or
// more of /proc to hide need a few more.
constexpr uint64_t kMostCalls = 1140;

class CostTest : public LaunchTest {};

TEST_F(CostTest, ALaunchMakesNoMoreSystemCallsThanItDid) {
  std::vector<std::string> argv =
      Command({"--memory=64M", "--pids=32", "--cpus=0.5", "--rootfs=" + MakeRootfs(), "--",
               "/launch", "--version"});
  CallCount count = CountCalls([&] {
    std::vector<char*> pointers;
    for (std::string& argument : argv) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    EnterDelegatedCgroup(user_->uid);
    if (::setgroups(0, nullptr) == 0 && ::setresgid(user_->gid, user_->gid, user_->gid) == 0 &&
        ::setresuid(user_->uid, user_->uid, user_->uid) == 0)
      ::execv(pointers[0], pointers.data());
  });
  EXPECT_EQ(count.status, 0);
  EXPECT_GT(count.calls, kMostCalls / 2);
  EXPECT_LE(count.calls, kMostCalls);
}

}  // namespace
}  // namespace taskcell::test
