// taskcell-gateway killed by SIGKILL at each step of a task, and started again: nothing is lost,
// nothing runs twice, nothing is left over. Runs on each engine.
#include "tests/engine/gateway_kill_test.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/engine/task_engine.h"
#include "tests/support/kill_at_call.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

// A gateway that is traced, and killed where a test says. One whose point never comes is killed all
// the same, which `reached` tells.
class DoomedGateway {
 public:
  using Where = std::function<bool(const EnteredCall&)>;

  DoomedGateway(const std::vector<std::string>& argv, const RunOptions& options, Where where)
      : thread_([this, argv, options, where = std::move(where)] {
          status_ = KillWhere([&] { Become(argv, options); },
                              [&](const EnteredCall& call) {
                                reached_ = armed_ && where(call);
                                return reached_ || give_up_;
                              });
          ended_ = true;
        }) {}
  ~DoomedGateway() {
    give_up_ = true;
    if (thread_.joinable()) thread_.join();
  }
  DoomedGateway(const DoomedGateway&) = delete;
  DoomedGateway& operator=(const DoomedGateway&) = delete;

  void Arm() { armed_ = true; }
  bool ended() const { return ended_; }
  bool reached() const { return reached_; }
  int status() const { return status_; }

 private:
  std::atomic<bool> armed_ = false;
  std::atomic<bool> give_up_ = false;
  std::atomic<bool> reached_ = false;
  std::atomic<bool> ended_ = false;
  std::atomic<int> status_ = -1;
  std::thread thread_;
};

// Whether a call is the point, asked of each call in turn.
class AtPoint {
 public:
  explicit AtPoint(const KillPoint& point) : point_(point), begun_(point.from < 0) {}

  bool operator()(const EnteredCall& call) {
    const bool is_it =
        begun_ && call.number == point_.call && call.path.find(point_.path) != std::string::npos;
    begun_ = begun_ || call.number == point_.from;
    return is_it && ++seen_ == point_.nth;
  }

 private:
  const KillPoint& point_;
  bool begun_;
  int seen_ = 0;
};

}  // namespace

GatewayKillTest::Json GatewayKillTest::Scenario() {
  return {{"steps",
           {{{"do", "read"}, {"path", "/agent/wiki/value.txt"}},
            {{"do", "write"}, {"path", "/workspace/out/report.txt"}, {"content", "{0}"}}}},
          {"reply", "{0}"}};
}

void GatewayKillTest::SetUp() {
  GatewayFixture::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  Put("agents/a1/wiki/value.txt", "the-value");
  Put("agents/closed/agent.toml",
      "[agent]\nname = \"closed\"\n[runtime]\nprovider = \"openai_compat\"\n[model]\n"
      "preferred = \"openai/test-model\"\n[container]\nsandbox_enabled = true\n");
  std::string agent = ReadText(AgentFile("agent.toml"));
  agent.replace(agent.find("\"a1\""), 4, "\"exporting\"");
  Put("agents/exporting/agent.toml", agent + "[taskcell]\nexport = true\n");
  Put("agents/exporting/wiki/value.txt", "the-value");
  GiveHomeToUser();
}

void GatewayKillTest::ExpectRecovery(const gateway::ProviderProcess& provider,
                                     const std::string& id, const std::string& expected) {
  StartGateway(provider.Url("/v1"));
  if (HasFatalFailure()) return;
  EXPECT_TRUE(WaitFor([this] { return IsIdle(); })) << Tasks();
  const Json tasks = Tasks();
  const int begun = Conversations(provider, std::string(kPrompt));
  if (expected.empty()) {
    EXPECT_TRUE(tasks.empty()) << tasks;
    EXPECT_EQ(begun, 0);
  } else {
    ASSERT_EQ(tasks.size(), 1U) << tasks;
    if (!id.empty()) {
      EXPECT_EQ(tasks[0]["id"], id);
    }
    const std::string state = tasks[0]["state"];
    if (expected != "?") {
      EXPECT_EQ(state, expected) << tasks;
    }
    ExpectAnswer(tasks[0]["id"], state, begun);
  }
  ExpectWorks(provider);
}

void GatewayKillTest::ExpectAnswer(const std::string& id, const std::string& state, int begun) {
  const Json answer = Api("/v1/tasks/" + id)["answer"];
  if (state == "done") {
    EXPECT_EQ(answer["reply"], "the-value") << answer;
    EXPECT_EQ(begun, 1) << "it runs exactly once";
    return;
  }
  EXPECT_LE(begun, 1) << "it runs at most once";
  if (state == "refused") {
    EXPECT_EQ(answer["code"], "network_disabled") << answer;
    return;
  }
  EXPECT_EQ(answer["code"], "interrupted") << answer;
  EXPECT_EQ(answer["task_id"], id);
  EXPECT_NE(answer["message"].get<std::string>().find("whether it had an effect is not known"),
            std::string::npos)
      << answer;
}

void GatewayKillTest::ExpectWorks(const gateway::ProviderProcess& provider) {
  const std::string id = Submit("asked afterwards");
  ASSERT_FALSE(id.empty());
  EXPECT_TRUE(WaitFor([&] { return StateOf(id) == "done"; })) << Show(id);
  EXPECT_EQ(Conversations(provider, "asked afterwards"), 1);
  EXPECT_EQ(StopGateway(), 0);
  const Json swept = SweepLater();
  EXPECT_TRUE(swept["failures"].empty()) << swept;
  EXPECT_TRUE(swept["interrupted"].empty()) << swept;
  ExpectTidy();
}

void GatewayKillTest::KillAt(const KillPoint& point, const std::string& url,
                             const std::function<void()>& ask) {
  DoomedGateway doomed(GatewayCommand(), WithOutputIn(AsUser(url), At("gateway.out")),
                       AtPoint(point));
  AwaitService([&] { return doomed.ended(); });
  ASSERT_FALSE(doomed.ended());
  doomed.Arm();
  ask();
  EXPECT_TRUE(WaitFor([&] { return doomed.ended(); })) << "the point is never reached";
  EXPECT_TRUE(doomed.reached());
  EXPECT_EQ(doomed.status(), 128 + SIGKILL);
}

namespace {

// ---- At calls of the gateway itself.

// A write that is not synced survives the process, though not a power failure.
// What an engine has a part in:
constexpr KillPoint kPoints[] = {
    {"ComparingItsCell", SYS_openat2, "self/cgroup", 1, -1, "interrupted"},
    {"HandingOverItsJob", SYS_sendmsg, "", 1, SYS_epoll_create1, "interrupted"},
    {"AskingTheProvider", SYS_connect, "", 1, SYS_epoll_create1, "interrupted"},
    {"CollectingItsEvidence", SYS_openat2, "self/cgroup", 2, -1, "interrupted"},
    {"BeforeItsReceipt", SYS_mkdirat, "receipts", 1, -1, "interrupted"},
    {"WritingItsReceipt", SYS_openat2, ".json", 1, SYS_mkdirat, "interrupted"},
    {"CleaningUp", SYS_unlinkat, "", 1, -1, "interrupted"},
};

// On the native one also what is the same for all, and its own.
constexpr KillPoint kNativePoints[] = {
    {"BeforeTheLedgerHasIt", SYS_pwrite64, "", 1, -1, ""},
    {"TakenInBeforeAnybodyIsTold", SYS_fdatasync, "", 1, -1, "done"},
    {"WhileItsRequesterIsTold", SYS_sendmsg, "", 1, SYS_fdatasync, "?"},
    {"WhileItIsClaimed", SYS_pwrite64, "", 1, SYS_fdatasync, "?"},
    {"OnceItIsClaimed", SYS_fdatasync, "", 2, -1, "interrupted"},
    {"ReadingItsAgent", SYS_sendmsg, "", 3, SYS_fdatasync, "?"},
    {"BeforeItsRunDirectory", SYS_mkdirat, "runs", 1, -1, "interrupted"},
    {"BeforeItsSnapshot", SYS_mkdirat, "snap", 1, -1, "interrupted"},
    {"InItsSnapshot", SYS_pidfd_open, "", 1, SYS_mkdirat, "interrupted"},
    {"OnceItsSnapshotIsMade", SYS_openat2, "SOUL.md", 1, -1, "interrupted"},
    {"WhileItsCellIsEntered", SYS_fdatasync, "", 1, SYS_mkdirat, "interrupted"},
    {"AuditingItsRefusal", SYS_openat2, "security_audit.jsonl", 1, -1, "interrupted", "closed"},
    {"LoggingItsRefusal", SYS_mkdirat, "logs", 1, -1, "interrupted", "closed"},
    {"OnceItsRefusalIsEntered", SYS_fdatasync, "", 1, SYS_mkdirat, "refused", "closed"},
    {"BeforeItsExport", SYS_mkdirat, "exports", 1, -1, "interrupted", "exporting"},
    {"InItsExport", SYS_openat2, "report.txt", 1, -1, "interrupted", "exporting"},
    {"BeforeItsExportIsWhole", SYS_renameat, ".part", 1, -1, "interrupted", "exporting"},
    {"AuditingItsExport", SYS_openat2, "security_audit.jsonl", 1, -1, "interrupted", "exporting",
     1},
    {"RemovingItsCell", SYS_pidfd_send_signal, "", 1, SYS_epoll_create1, "interrupted"},
    {"WhileTheEndOfItsCellAndItsAccountAreEntered", SYS_fdatasync, "", 1, SYS_unlinkat,
     "interrupted"},
    {"OnceItsEndIsEntered", SYS_fdatasync, "", 2, SYS_unlinkat, "done"},
    {"AtTheEndOfItsThread", SYS_exit, "", 1, SYS_unlinkat, "done"},
    {"BeforeItsCell", SYS_memfd_create, "taskcell-plan", 1, -1, "interrupted"},
    {"OnceItsLauncherRuns", SYS_pidfd_open, "", 1, SYS_memfd_create, "interrupted"},
    {"OnceItsCellStands", SYS_pidfd_open, "", 2, SYS_memfd_create, "interrupted"},
};

std::vector<KillPoint> Points() {
  std::vector<KillPoint> points(std::begin(kPoints), std::end(kPoints));
  if (!OnDocker()) points.insert(points.end(), std::begin(kNativePoints), std::end(kNativePoints));
  return points;
}

class GatewayKillAtCallTest : public GatewayKillTest,
                              public testing::WithParamInterface<KillPoint> {};

TEST_P(GatewayKillAtCallTest, NothingIsLostTwiceOrLeftOver) {
  const KillPoint& point = GetParam();
  gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  std::string id;
  KillAt(point, provider.Url("/v1"), [&] { id = Submit(std::string(kPrompt), point.agent); });
  if (HasFatalFailure()) return;
  ExpectRecovery(provider, id, point.state);
  EXPECT_EQ(Exports(), point.exports);
}

INSTANTIATE_TEST_SUITE_P(Steps, GatewayKillAtCallTest, testing::ValuesIn(Points()),
                         [](const auto& point) { return std::string(point.param.name); });

// ---- In the middle of everything.

constexpr int kGatewayLost = 4;

TEST_F(GatewayKillTest, ATaskWhoseAiWaitsIsInterruptedAndThoseThatWaitForItAreNot) {
  gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/mode/hang/v1"));
  const std::string id = Submit(std::string(kPrompt));
  Background waiting({Program("taskcell"), "submit", "a1", "another one", "--path", "bus", "--wait",
                      "--home", Home()},
                     AsUser(), At("client.out"));
  ASSERT_TRUE(WaitFor([&] { return provider.Log().size() >= 2; }));
  KillGateway();
  EXPECT_EQ(waiting.Wait(std::chrono::minutes(1)), kGatewayLost);
  EXPECT_NE(ReadText(At("client.out")).find("gateway_lost: the gateway went away before task "),
            std::string::npos)
      << ReadText(At("client.out"));
  StartGateway(provider.Url("/v1"));
  EXPECT_EQ(StateOf(id), "interrupted");
  EXPECT_EQ(Conversations(provider, std::string(kPrompt)), 1);
  ExpectAnswer(id, "interrupted", 1);
  ExpectWorks(provider);
}

}  // namespace
}  // namespace taskcell::test
