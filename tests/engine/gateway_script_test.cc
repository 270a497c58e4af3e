// taskcell-gateway killed by SIGKILL at each step of a script, and started again: the script ends
// with it and is not run again, and nothing is left over. The host's programs are its cell's.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

#include "launcher/base/text.h"
#include "tests/engine/gateway_kill_test.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

class GatewayScriptKillTest : public GatewayKillTest {
 protected:
  void Ask(const std::string& code) {
    caller_ = std::make_unique<Background>(
        std::vector<std::string>{"curl", "-s", "--unix-socket", Home() + "/taskcell.sock", "-d",
                                 Json{{"language", "bash"}, {"code", code}}.dump(),
                                 "http://gateway/v1/scripts"},
        AsUser(), At("script.out"));
  }
  // Its caller has no answer, it does not run any more, nor again, and the next one runs.
  void ExpectEnd(const gateway::ProviderProcess& provider) {
    EXPECT_NE(caller_->Wait(std::chrono::minutes(1)), 0) << "nobody answers it";
    EXPECT_EQ(ReadText(At("script.out")), "");
    EXPECT_TRUE(WaitFor([] { return !IsRunning(); }));
    StartGateway(provider.Url("/v1"));
    if (HasFatalFailure()) return;
    EXPECT_TRUE(Tasks().empty());
    EXPECT_EQ(Api("/v1/scripts", {"-d", R"({"language": "bash", "code": "echo out"})"})["stdout"],
              "out\n");
    EXPECT_FALSE(IsRunning());
  }

  static std::string Sleeper() { return Text("sleep 900.", ::getpid()); }
  static bool IsRunning() { return test::Run({"pgrep", "-xf", Sleeper()}).status == 0; }

  std::unique_ptr<Background> caller_;
};

TEST_F(GatewayScriptKillTest, AScriptThatRunsEndsWithItAndIsNotRunAgain) {
  gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  Ask(Sleeper());
  ASSERT_TRUE(WaitFor(IsRunning)) << ReadText(At("script.out"));
  KillGateway();
  ExpectEnd(provider);
  EXPECT_EQ(SweepLater()["directories"].size(), 1U);
  ExpectWorks(provider);
}

constexpr KillPoint kWhileItIsMade[] = {
    {"BeforeItsRunDirectory", SYS_mkdirat, "runs", 1, -1},
    {"StoringIt", SYS_openat2, "script.sh", 1, -1},
    {"BeforeItsCell", SYS_memfd_create, "taskcell-plan", 1, -1},
    {"OnceItsLauncherRuns", SYS_pidfd_open, "", 1, SYS_memfd_create},
    {"OnceItsCellStands", SYS_pidfd_open, "", 2, SYS_memfd_create},
    {"ComparingItsCell", SYS_openat2, "self/cgroup", 1, -1},
    {"HandingItOver", SYS_sendmsg, "", 1, SYS_memfd_create},
};
constexpr KillPoint kOnceItEnded[] = {
    {"RemovingItsCell", SYS_pidfd_send_signal, "", 1, SYS_memfd_create},
    {"CleaningUp", SYS_unlinkat, "", 1, SYS_memfd_create},
    {"Answering", SYS_sendmsg, "", 1, SYS_unlinkat},
};

class GatewayScriptKillAtCallTest : public GatewayScriptKillTest,
                                    public testing::WithParamInterface<KillPoint> {
 protected:
  void ExpectNothingLeft(const std::string& code) {
    gateway::ProviderProcess provider = MakeProvider(Scenario());
    ASSERT_TRUE(provider.IsUp());
    KillAt(GetParam(), provider.Url("/v1"), [&] { Ask(code); });
    if (HasFatalFailure()) return;
    ExpectEnd(provider);
    if (HasFatalFailure()) return;
    ExpectWorks(provider);
  }
};

class GatewayScriptMadeTest : public GatewayScriptKillAtCallTest {};
TEST_P(GatewayScriptMadeTest, NothingRunsAgainOrIsLeftOver) { ExpectNothingLeft(Sleeper()); }
INSTANTIATE_TEST_SUITE_P(Steps, GatewayScriptMadeTest, testing::ValuesIn(kWhileItIsMade),
                         [](const auto& point) { return std::string(point.param.name); });

class GatewayScriptEndedTest : public GatewayScriptKillAtCallTest {};
TEST_P(GatewayScriptEndedTest, NothingRunsAgainOrIsLeftOver) { ExpectNothingLeft("echo out"); }
INSTANTIATE_TEST_SUITE_P(Steps, GatewayScriptEndedTest, testing::ValuesIn(kOnceItEnded),
                         [](const auto& point) { return std::string(point.param.name); });

}  // namespace
}  // namespace taskcell::test
