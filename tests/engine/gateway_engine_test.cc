// taskcell-gateway whose engine is slow, breaks off, or is gone for a while, and one that is killed
// at a request to it.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>

#include "launcher/base/text.h"
#include "tests/engine/gateway_fixture.h"
#include "tests/engine/gateway_kill_test.h"
#include "tests/support/engine_proxy.h"
#include "tests/support/own_network.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

// Between the gateway and the engine: `spoil` makes of a request and its real answer what is
// answered.
class GatewayEngineTest : public GatewayFixture {
 protected:
  using Spoil = std::function<std::string(const FakeEngine::Request&, std::string answer)>;

  void StartBehind(const gateway::ProviderProcess& provider, Spoil spoil) {
    ASSERT_TRUE(provider.IsUp());
    engine_ = socket_;
    proxy_ = std::make_unique<FakeEngine>(
        [this, spoil = std::move(spoil)](const FakeEngine::Request& request) {
          if (is_gone_) return std::string();
          return spoil(request, ForwardToEngine(engine_, request));
        });
    Admit(*proxy_);
    socket_ = proxy_->socket_path();
    StartGateway(provider.Url("/v1"));
    socket_ = engine_;
  }
  void TearDown() override {
    gateway_.reset();
    proxy_.reset();
    GatewayFixture::TearDown();
  }
  gateway::ProviderProcess MakeSlowProvider() const {
    return MakeProvider(
        {{"steps", {{{"do", "shell"}, {"command", "sleep 1"}}}}, {"reply", "the reply"}});
  }
  bool HasEnded(const std::string& id) const {
    return WaitFor([&] {
      const std::string state = StateOf(id);
      return state != "accepted" && state != "running";
    });
  }
  // With the engine as it should be again, the next task works and nothing is left.
  void ExpectWorks(const gateway::ProviderProcess& provider) {
    const std::string id = Submit("asked afterwards");
    EXPECT_TRUE(HasEnded(id));
    EXPECT_EQ(StateOf(id), "done") << Show(id);
    EXPECT_EQ(Conversations(provider, "asked afterwards"), 1);
    EXPECT_EQ(StopGateway(), 0);
    EXPECT_TRUE(SweepLater()["failures"].empty());
    ExpectTidy();
  }
  static bool Is(const FakeEngine::Request& request, const char* method, const char* target) {
    return request.method == method && request.target.find(target) != std::string::npos;
  }

  std::string engine_;
  std::atomic<bool> is_gone_ = false;
  std::unique_ptr<FakeEngine> proxy_;
};

TEST_F(GatewayEngineTest, OneThatIsSlowIsWaitedFor) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  StartBehind(provider, [](const FakeEngine::Request&, std::string answer) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return answer;
  });
  const std::string id = Submit("the question");
  EXPECT_TRUE(HasEnded(id));
  EXPECT_EQ(StateOf(id), "done") << Show(id);
  ExpectWorks(provider);
}

TEST_F(GatewayEngineTest, HalfAnAnswerIsAFailureThatLeavesNothing) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  struct Row {
    const char* method;
    const char* target;
  };
  static constexpr Row kRows[] = {
      {"GET", "/info"}, {"GET", "/images/"}, {"POST", "/containers/create"}, {"GET", "/json"}};
  std::atomic<const Row*> spoilt = nullptr;
  std::atomic<bool> is_spoilt = false;
  StartBehind(provider, [&](const FakeEngine::Request& request, std::string answer) {
    const Row* row = spoilt;
    if (row == nullptr || !Is(request, row->method, row->target)) return answer;
    is_spoilt = true;
    return answer.substr(0, answer.size() / 2);
  });
  for (const Row& row : kRows) {
    is_spoilt = false;
    spoilt = &row;
    const std::string id = Submit(Text("the question of ", row.target, "."));
    EXPECT_TRUE(HasEnded(id)) << row.target;
    EXPECT_TRUE(is_spoilt) << "control: " << row.target;
    const std::string state = StateOf(id);
    EXPECT_TRUE(state == "failed" || state == "refused") << row.target << Show(id);
    EXPECT_EQ(Conversations(provider, Text("the question of ", row.target, ".")), 0);
    spoilt = nullptr;
  }
  ExpectWorks(provider);
}

// What runs has its gate, which is no matter of the engine's.
TEST_F(GatewayEngineTest, OneThatGoesWhileTheAiWorksTakesNoReplyWithIt) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  StartBehind(provider, [](const FakeEngine::Request&, std::string answer) { return answer; });
  const std::string id = Submit("the question");
  ASSERT_TRUE(WaitFor([&] { return Conversations(provider, "the question") == 1; }));
  is_gone_ = true;
  EXPECT_TRUE(HasEnded(id));
  EXPECT_EQ(StateOf(id), "done") << Show(id);
  EXPECT_EQ(Api("/v1/tasks/" + id)["answer"]["reply"], "the reply");
  EXPECT_EQ(Conversations(provider, "the question"), 1);
  const std::string refused = Submit("the second");
  EXPECT_TRUE(HasEnded(refused));
  EXPECT_EQ(Show(refused)["code"], "docker_unreachable") << Show(refused);
  is_gone_ = false;
  ExpectWorks(provider);
}

// The real one is ended with everything it runs, and started again.
TEST_F(GatewayEngineTest, ARestartInTheMiddleEndsTheTaskAndTheNextWorks) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/mode/hang/v1"));
  const std::string id = Submit("the question");
  ASSERT_TRUE(WaitFor([&] { return Conversations(provider, "the question") == 1; }));
  for (const char* step : {"engine-down", "engine-up"}) {
    RunOptions where_it_was;
    where_it_was.in_child = ReturnToFirstNetwork;
    const Outcome done = test::Run({FIXTURE_PATH, step}, where_it_was);
    ASSERT_EQ(done.status, 0) << step << done.err;
  }
  EXPECT_TRUE(HasEnded(id));
  EXPECT_EQ(StateOf(id), "failed") << Show(id);
  EXPECT_EQ(Conversations(provider, "the question"), 1);
  EXPECT_EQ(StopGateway(), 0);
  StartGateway(provider.Url("/v1"));
  ExpectWorks(provider);
}

// A sweep by a clock that is far ahead.
TEST_F(GatewayEngineTest, AContainerThatSomebodyRunsIsNotSweptPastItsDeadline) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  const std::string id = Submit("the question");
  ASSERT_TRUE(WaitFor([&] { return Conversations(provider, "the question") == 1; }));
  const Json swept = SweepLater();
  EXPECT_TRUE(swept["containers"].empty()) << swept;
  EXPECT_TRUE(swept["directories"].empty()) << swept;
  EXPECT_EQ(StateOf(id), "running") << "control: it was swept in the middle";
  EXPECT_TRUE(HasEnded(id));
  EXPECT_EQ(StateOf(id), "done") << Show(id);
  ExpectWorks(provider);
}

// ---- Killed at requests to the engine.

struct RequestPoint {
  const char* name;
  const char* method;
  const char* target;  // part of the request's
  bool answered;       // whether the engine has done it by then
};

constexpr RequestPoint kRequestPoints[] = {
    {"BeforeTheContainerIsCreated", "POST", "/containers/create", false},
    {"OnceTheContainerIsCreated", "POST", "/containers/create", true},
    {"BeforeTheContainerIsStarted", "POST", "/start", false},
    {"OnceTheContainerIsStarted", "POST", "/start", true},
    {"LookingAtTheContainer", "GET", "/json", true},
    {"BeforeTheContainerIsRemoved", "DELETE", "/containers/", false},
    {"OnceTheContainerIsRemoved", "DELETE", "/containers/", true},
};

void PrintTo(const RequestPoint& point, std::ostream* out) { *out << point.name; }

class GatewayKillAtRequestTest : public GatewayKillTest,
                                 public testing::WithParamInterface<RequestPoint> {};

TEST_P(GatewayKillAtRequestTest, NothingIsLostTwiceOrLeftOver) {
  const RequestPoint& point = GetParam();
  gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  const std::string engine = socket_;
  std::atomic<bool> created = false;
  std::atomic<bool> begun = false;
  std::atomic<bool> killed = false;
  FakeEngine proxy([&](const FakeEngine::Request& request) {
    const bool is_create = request.target.find("/containers/create") != std::string::npos;
    created = created || is_create;
    const bool is_it = created && request.method == point.method &&
                       request.target.find(point.target) != std::string::npos &&
                       !begun.exchange(true);
    std::string answer;
    if (!is_it || point.answered) answer = ForwardToEngine(engine, request);
    if (is_it) {
      KillGateway();
      killed = true;
    }
    return answer;
  });
  Admit(proxy);
  socket_ = proxy.socket_path();
  StartGateway(provider.Url("/v1"));
  const std::string id = Submit(std::string(kPrompt));
  socket_ = engine;
  ASSERT_TRUE(WaitFor([&] { return killed || IsIdle(); }));
  ASSERT_TRUE(killed) << "the point is never reached";
  ASSERT_EQ(gateway_->Wait(std::chrono::minutes(1)), 128 + SIGKILL);
  ExpectRecovery(provider, id, "interrupted");
}

INSTANTIATE_TEST_SUITE_P(Steps, GatewayKillAtRequestTest, testing::ValuesIn(kRequestPoints),
                         [](const auto& point) { return std::string(point.param.name); });

}  // namespace
}  // namespace taskcell::test
