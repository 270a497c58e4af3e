#include "gateway/egress/start_thread.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/fixture.h"

namespace taskcell::gateway {
namespace {

TEST(StartThreadTest, TheThreadRunsItsBody) {
  bool ran = false;
  std::thread thread = std::move(StartThread([&ran] { ran = true; })).value();
  thread.join();
  EXPECT_TRUE(ran);
}

TEST(StartThreadTest, WhereNoThreadCanBeItIsAnErrorThatNamesTheLimits) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become a user with a limit on processes");
  int status = test::InChild([] {
    struct rlimit none = {0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0 || ::setgroups(0, nullptr) != 0 ||
        ::setresuid(65534, 65534, 65534) != 0)
      return 2;
    Result<std::thread> thread = StartThread([] {});
    if (thread.ok()) {
      thread->join();
      return 1;
    }
    return thread.error().text.find("ulimit -u") != std::string::npos ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::gateway
