// taskcell-probe live as a program: what it says, how it ends, and that nothing is left however it
// does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/fixture.h"
#include "tests/support/host_guard.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;

class LiveProgramTest : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    TASKCELL_REQUIRE(::access(Program("taskcell-probe").c_str(), X_OK) == 0,
                     "needs taskcell-probe where the test user can execute it");
  }

  Outcome Live(std::vector<std::string> arguments = {}, int timeout_ms = 60000) const {
    RunOptions options;
    options.user = user_;
    options.timeout_ms = timeout_ms;
    return Probe(std::move(arguments), options);
  }

  // A host that is too busy to give a cell more processor time than its limit proves nothing: the
  // probe says so, and is asked again.
  static Outcome Probe(std::vector<std::string> arguments, const RunOptions& options) {
    arguments.insert(arguments.begin(), {Program("taskcell-probe"), "live"});
    Outcome outcome;
    for (int i = 0; i < kTries; ++i) {
      outcome = test::Run(arguments, options);
      if (outcome.status != kCouldNotTell) break;
    }
    return outcome;
  }

  static constexpr int kTries = 5;
  static constexpr int kCouldNotTell = 3;
};

TEST_F(LiveProgramTest, EveryLimitHolds) {
  Outcome outcome = Live({"--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["engine"], "native");
  EXPECT_EQ(report["overall"], "held");
  EXPECT_TRUE(report["refusal"].is_null());
}

TEST_F(LiveProgramTest, RootProbesAsNobody) {
  Outcome outcome = Probe({"--quiet"}, {});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "all limits hold (native)\n");
}

TEST_F(LiveProgramTest, OtherLimitsHoldToo) {
  Outcome outcome = Live({"--memory", "32M", "--pids", "20", "--cpus", "0.1", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  std::map<std::string, Json> seen;
  Json report = Json::parse(outcome.out);
  for (const Json& row : report["limits"]) seen[row["limit"]] = row["seen"];
  EXPECT_EQ(seen["memory"], 32U << 20U);
  EXPECT_EQ(seen["pids"], 20);
  EXPECT_EQ(seen["cpu"], 100);
}

TEST_F(LiveProgramTest, AUserWithoutDelegationIsToldTheCauseAndTheRemedy) {
  RunOptions options;
  options.user = User{"none", 64000, 64000, "/"};
  Outcome outcome = test::Run({Program("taskcell-probe"), "live"}, options);
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("limits cannot be enforced here (native)\n")) << outcome.out;
  EXPECT_NE(outcome.out.find("64000"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("[resource_limits_unenforced]"), std::string::npos) << outcome.out;
}

TEST_F(LiveProgramTest, AnUnusableCommandLineIsUsage) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--memory", "1M"}, {"--memory", "x"}, {"--what"}}) {
    Outcome outcome = Live(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
}

TEST_F(LiveProgramTest, TheBreakerDoesNothingOutsideOfACell) {
  Outcome outcome = test::Run({Program("taskcell-breaker"), "pids:100000"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("taskcell-probe live"), std::string::npos) << outcome.err;
}

// Whenever it is killed: before, in and between its cells.
TEST_F(LiveProgramTest, AProbeThatIsKilledLeavesNothing) {
  for (int after_ms : {5, 30, 60, 120, 400, 700, 850, 1000}) {
    const std::vector<std::string> before = CellTraces();
    Outcome outcome = Live({}, after_ms);
    EXPECT_TRUE(outcome.timed_out || outcome.status == 0) << outcome.out;
    EXPECT_EQ(ChangesSince(before), std::vector<std::string>{})
        << "killed after " << after_ms << " ms";
  }
}

}  // namespace
}  // namespace taskcell::test
