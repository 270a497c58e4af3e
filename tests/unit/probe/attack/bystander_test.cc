#include "probe/attack/bystander.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "tests/support/fixture.h"

namespace taskcell::attack {
namespace {

using testing::HasSubstr;

// In a user namespace of its own, whose quotas can be set without taking anything from anybody.
void InUserNamespace(const std::function<void()>& body) {
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  TASKCELL_REQUIRE(WEXITSTATUS(status) != 77, "no user namespace can be made here");
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(BystanderTest, WhoIsLeftAloneHasItAllAndIsNotDenied) {
  Result<Bystander> bystander = Bystander::Start();
  ASSERT_TRUE(bystander.ok()) << bystander.error().text;
  Result<Bystander::Seen> seen = bystander->End();
  ASSERT_TRUE(seen.ok()) << seen.error().text;
  EXPECT_GE(seen->rounds, 1U);
  EXPECT_EQ(seen->denied, "");
  EXPECT_GE(seen->smallest_pipe_bytes, 4096U);
  EXPECT_THAT(Describe(seen.value()), HasSubstr("had an inotify instance, a pipe of"));
}

TEST(BystanderTest, WhoseQuotaIsUsedUpIsDeniedAndSaysWhat) {
  InUserNamespace([] {
    const auto allow = [](const char* instances) {
      std::ofstream("/proc/sys/user/max_inotify_instances") << instances << std::flush;
    };
    Result<Bystander> bystander = Bystander::Start();
    ASSERT_TRUE(bystander.ok()) << bystander.error().text;
    allow("0");
    Result<Bystander::Seen> seen = bystander->End();
    ASSERT_TRUE(seen.ok()) << seen.error().text;
    EXPECT_EQ(seen->denied, "EMFILE an inotify instance");
    EXPECT_EQ(Describe(seen.value()), "outside its user was denied: EMFILE an inotify instance");
    EXPECT_FALSE(Bystander::Start().ok()) << "nothing can be told by one that lacks it already";
  });
}

TEST(BystanderTest, ASmallPipeIsSaidToBeAShare) {
  EXPECT_THAT(Describe({3, 8192, ""}), HasSubstr("a pipe of 8192 bytes"));
  EXPECT_THAT(Describe({3, 8192, ""}), HasSubstr("CAVEATS"));
  EXPECT_THAT(Describe({3, 65536, ""}), testing::Not(HasSubstr("CAVEATS")));
}

}  // namespace
}  // namespace taskcell::attack
