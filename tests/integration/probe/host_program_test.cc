// What a whole run of taskcell-probe costs: it is asked by people, and by scripts before each cell.
// The time it takes is compared by ./dev bench.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/count_calls.h"
#include "tests/support/fixture.h"
#include "tests/support/syscall_faults.h"

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

// As with SystemCallFilter=~openat2 in a unit.
TEST(HostProgramTest, WhereAFilterKillsWhoeverCallsOpenat2AllIsToldAllTheSame) {
  for (const int err : {0, kKills}) {
    RunOptions options;
    options.in_child = [err] {
      if (err != 0 && !InstallFaults({{SYS_openat2, err}})) ::_exit(90);
    };
    const Outcome ran = test::Run({Program("taskcell-probe"), "--json"}, options);
    ASSERT_LE(ran.status, 1) << ran.status << ran.err;
    const auto told = nlohmann::json::parse(ran.out);
    std::map<std::string, std::string> verdicts;
    for (const auto& row : told["findings"]) verdicts[row["id"]] = row["verdict"];
    EXPECT_EQ(verdicts["kernel.openat2"], err == 0 ? "ready" : "note");
    EXPECT_EQ(verdicts["userns"], "ready") << ran.out;
    EXPECT_TRUE(verdicts.contains("engine.sockets")) << ran.out;
  }
}

}  // namespace
}  // namespace taskcell::test
