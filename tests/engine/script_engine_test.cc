// A script whose engine is slow, breaks off, or goes away: its answer, and that nothing stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

#include "launcher/base/text.h"
#include "tests/engine/script_fixture.h"
#include "tests/support/engine_proxy.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

class ScriptEngineFaultTest : public ScriptFixture {
 protected:
  // Answers a request in the real engine's place.
  using Between = std::function<std::string(const FakeEngine::Request&)>;

  Json RunBehind(const Between& between, std::string_view code) {
    FakeEngine proxy(between);
    EXPECT_EQ(::chmod(fs::path(proxy.socket_path()).parent_path().c_str(), 0755), 0);
    EXPECT_EQ(::chmod(proxy.socket_path().c_str(), 0666), 0);
    const std::string engine = std::exchange(socket_, proxy.socket_path());
    const Json answer = RunJson("bash", code);
    socket_ = engine;
    return answer;
  }
  static bool Is(const FakeEngine::Request& request, const char* method, const char* target) {
    return request.method == method && request.target.find(target) != std::string::npos;
  }
  std::string AuditLog() const { return ReadText(Home() + "/security_audit.jsonl"); }
  // By an engine as it should be; then the next script works.
  void ExpectNothingStays() const {
    const Json swept = SweepLater();
    EXPECT_TRUE(swept["failures"].empty()) << swept;
    EXPECT_EQ(Containers(), 0) << swept;
    const std::string runs = Home() + "/sandbox/runs";
    EXPECT_TRUE(!fs::exists(runs) || fs::is_empty(runs));
    EXPECT_EQ(RunJson("bash", "echo next")["stdout"], "next\n");
  }
};

TEST_F(ScriptEngineFaultTest, OneThatIsSlowIsWaitedFor) {
  const std::string engine = socket_;
  const Json answer = RunBehind(
      [&engine](const FakeEngine::Request& request) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return ForwardToEngine(engine, request);
      },
      "echo out");
  EXPECT_EQ(answer["code"], "ok") << answer;
  EXPECT_EQ(answer["stdout"], "out\n") << answer;
  EXPECT_EQ(Containers(), 0);
}

TEST_F(ScriptEngineFaultTest, HalfAnAnswerIsARefusalAndNothingStays) {
  struct Row {
    const char* method;
    const char* target;
  };
  const std::string engine = socket_;
  for (const Row& row : {Row{"GET", "/info"}, Row{"GET", "/images/"},
                         Row{"POST", "/containers/create"}, Row{"GET", "/containers/"}}) {
    fs::remove(Home() + "/security_audit.jsonl");
    std::atomic<bool> is_spoilt = false;
    const Json answer = RunBehind(
        [&](const FakeEngine::Request& request) {
          const std::string whole = ForwardToEngine(engine, request);
          if (!Is(request, row.method, row.target)) return whole;
          is_spoilt = true;
          return whole.substr(0, whole.size() / 2);
        },
        "echo out");
    EXPECT_TRUE(is_spoilt) << "control: " << row.target;
    EXPECT_THAT(answer["code"].get<std::string>(),
                AnyOf("runtime_unhealthy", "create_failed", "start_failed"))
        << row.target << answer;
    EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr("The script was not run."));
    EXPECT_EQ(answer["stdout"], "") << row.target;
    EXPECT_THAT(AuditLog(), HasSubstr("script_sandbox_unavailable")) << row.target;
    ExpectNothingStays();
  }
}

TEST_F(ScriptEngineFaultTest, OneThatGoesBeforeTheScriptRunsIsARefusal) {
  const std::string engine = socket_;
  for (const char* last : {"/containers/create", "/start"}) {
    std::atomic<bool> is_gone = false;
    const Json answer = RunBehind(
        [&](const FakeEngine::Request& request) {
          if (is_gone) return std::string();
          const std::string whole = ForwardToEngine(engine, request);
          is_gone = Is(request, "POST", last);
          return is_gone ? std::string() : whole;
        },
        "echo out");
    EXPECT_TRUE(is_gone) << "control: " << last;
    EXPECT_EQ(answer["code"], "runtime_unhealthy") << last << answer;
    EXPECT_EQ(answer["stdout"], "") << last;
    ExpectNothingStays();
  }
}

// What ran has its answer, and its container goes by itself (AutoRemove) or with the next sweep.
TEST_F(ScriptEngineFaultTest, OneThatGoesBeforeTheCellIsRemovedTakesNoOutputWithIt) {
  const std::string engine = socket_;
  std::atomic<bool> is_gone = false;
  const Json answer = RunBehind(
      [&](const FakeEngine::Request& request) {
        is_gone = is_gone || request.method == "DELETE";
        return is_gone ? std::string() : ForwardToEngine(engine, request);
      },
      "echo out; exit 3");
  EXPECT_TRUE(is_gone) << "control";
  EXPECT_EQ(answer["code"], "ok") << answer;
  EXPECT_EQ(answer["exit_code"], 3) << answer;
  EXPECT_EQ(answer["stdout"], "out\n") << answer;
  EXPECT_THAT(answer["warnings"].dump(), HasSubstr("container_remove_failed"));
  EXPECT_THAT(AuditLog(), HasSubstr("task_sandbox_cleanup_failed"));
  ExpectNothingStays();
}

}  // namespace
}  // namespace taskcell::test
