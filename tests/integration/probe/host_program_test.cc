// What a whole run of taskcell-probe costs: it is asked by people, and by scripts before each cell.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/count_calls.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

int64_t ChildrenUs() {
  struct rusage usage = {};
  (void)::getrusage(RUSAGE_CHILDREN, &usage);  // ignoring: it cannot fail
  auto us = [](const timeval& time) { return int64_t{time.tv_sec} * 1'000'000 + time.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// The processor time of the cheapest of several runs: it waits for nothing, so on an idle host that
// is what it takes, and on a busy one the clock would tell of others.
int64_t CheapestUs(const std::vector<std::string>& command) {
  constexpr int kRuns = 7;
  RunOptions options;
  if (::geteuid() == 0) options.user = TestUser();  // it is meant for ordinary users
  int64_t cheapest = INT64_MAX;
  for (int i = 0; i < kRuns; ++i) {
    int64_t before = ChildrenUs();
    Outcome outcome = Run(command, options);
    EXPECT_LE(outcome.status, 1) << outcome.err;
    cheapest = std::min(cheapest, ChildrenUs() - before);
  }
  return cheapest;
}

TEST(HostProgramTest, IsDoneWithinItsTime) {
  EXPECT_LE(CheapestUs({Program("taskcell-probe"), "--quiet"}), 150'000);
}

TEST(HostProgramTest, TakesHalfTheTimeOfPodmanInfo) {
  bool has_podman = test::Run({"podman", "--version"}).status == 0;
  TASKCELL_REQUIRE(has_podman, "needs podman, to compare with");
  EXPECT_LE(2 * CheapestUs({Program("taskcell-probe"), "--quiet"}), CheapestUs({"podman", "info"}));
}

// About 1900 of an ordinary user's on a host with hybrid cgroups, where podman info makes 19000.
TEST(HostProgramTest, MakesFewSystemCalls) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to trace");
  std::string program = Program("taskcell-probe");
  CallCount count = CountCalls([&] {
    (void)::execl(program.c_str(), program.c_str(), "--quiet", nullptr);  // ignoring: 127 follows
  });
  EXPECT_LE(count.status, 1);
  EXPECT_LE(count.calls, 5000U);
}

}  // namespace
}  // namespace taskcell::test
