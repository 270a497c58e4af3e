// What a whole run of taskcell-probe costs: it is asked by people, and by scripts before each cell.
// The time it takes is compared by ./dev bench.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/count_calls.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

// About 1900 of an ordinary user's on a host with hybrid cgroups, where podman info makes 19000.
TEST(HostProgramTest, MakesFewSystemCalls) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to trace");
  std::string program = Program("taskcell-probe");
  CallCount count = CountCalls([&] {
    (void)::execl(program.c_str(), program.c_str(), "--quiet", nullptr);  // ignoring: 127 follows
  });
  EXPECT_LE(count.status, 1);
  EXPECT_LE(count.calls, 3000U);
}

}  // namespace
}  // namespace taskcell::test
