// Refusals as an operator meets them: the installed client and a real engine, no world of a test.
// And an engine that hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/engine/task_fixture.h"
#include "tests/engine/task_test.h"
#include "tests/support/engine_proxy.h"
#include "tests/support/fake_engine.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RealRefusalsTest : public TaskFixture {
 protected:
  // Runs a task as `user` (nullopt: root), whose home it is; `group`, too, where it is not 0.
  Outcome RunAs(const std::optional<User>& user, const std::string& socket, gid_t group = 0) const {
    const std::string home = path_ + "/home";
    const std::string owner = user ? Text(user->uid, ":", user->gid) : "0:0";
    EXPECT_EQ(test::Run({"chown", "-hR", owner, home}).status, 0);
    EXPECT_EQ(::chmod(home.c_str(), 0700), 0);
    RunOptions run;
    run.environment = {Text("OPENAI_API_KEY=", kKey), "DOCKER_HOST=unix://" + socket};
    std::vector<std::string> argv;
    if (group == 0) {
      run.user = user;
    } else {
      argv = {"setpriv", Text("--reuid=", user->uid), Text("--regid=", user->gid),
              Text("--groups=", group)};
    }
    for (const std::string& word : {Program("taskcell"), std::string("run"), std::string("a1"),
                                    std::string("Say pong."), std::string("--home"), home})
      argv.push_back(word);
    return test::Run(argv, run);
  }
  // What a refusal is, whoever meets it: nothing on stdout, code and remedy on stderr, one event.
  void ExpectRefused(const Outcome& run, std::string_view code, std::string_view remedy) const {
    EXPECT_EQ(run.status, 3) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(Text("Task sandbox unavailable (", code, "): ")));
    EXPECT_THAT(run.err, HasSubstr(std::string(remedy)));
    const Json line = Json::parse(ReadText(path_ + "/home/security_audit.jsonl"), nullptr, false);
    ASSERT_TRUE(line.is_object()) << line << " is one event alone";
    EXPECT_EQ(line["event_type"], "task_sandbox_unavailable");
    EXPECT_EQ(line["details"]["reason"], code);
    EXPECT_FALSE(fs::exists(path_ + "/home/sandbox"));
    fs::remove(path_ + "/home/security_audit.jsonl");
  }
};

TEST_F(RealRefusalsTest, EachComesFromTheRealThingWithItsRemedy) {
  ExpectRefused(RunAs(std::nullopt, socket_), "root_user", "runs as root (uid 0)");
  ExpectRefused(RunAs(user_, At("no-engine.sock")), "docker_unreachable", At("no-engine.sock"));
  const std::string closed = At("closed.sock");
  const UniqueFd listener = sys::ListenPackets(closed).value();
  ASSERT_EQ(::chmod(closed.c_str(), 0600), 0);
  ExpectRefused(RunAs(user_, closed), "docker_unreachable", "this user may not use the socket");
  std::string config = ReadText(path_ + "/home/config.toml");
  config.replace(config.find(image_), image_.size(), "taskcell-not-there:1");
  Put("config.toml", config);
  ExpectRefused(RunAs(user_, socket_), "image_missing", "taskcell-not-there:1");
}

// No refusal: what the guide calls it comes when the container is to be made, and no hatch opens.
TEST_F(RealRefusalsTest, AGroupOfRootIsAFailureAndNoHatchOpens) {
  User of_root = *user_;
  of_root.gid = 0;
  std::string config = ReadText(path_ + "/home/config.toml");
  Put("config.toml", config + "when_unavailable = \"run_unsandboxed\"\n");
  const Outcome run = RunAs(of_root, socket_, user_->gid);
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("container_refused: sandbox container refused: the gateway runs "
                                 "as root (uid"));
  EXPECT_FALSE(fs::exists(path_ + "/home/security_audit.jsonl"));
  std::string log;
  for (const auto& day : fs::directory_iterator(path_ + "/home/logs")) log += ReadText(day.path());
  EXPECT_THAT(log, HasSubstr("code=container_refused"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
  EXPECT_FALSE(fs::exists(path_ + "/home/sandbox"));
}

TEST_F(TaskTest, AValueTheRealEngineRefusesIsNamedByItsKey) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  const std::string config = ReadText(At("home/config.toml"));
  for (const auto& [lines, key] : std::vector<std::pair<std::string, std::string>>{
           {"cpu_millis = 64000\n", "cpu_millis = 64000"},
           {"memory_bytes = 4194304\ntmp_bytes = 1048576\nworkspace_bytes = 1048576\n",
            "memory_bytes = 4194304"}}) {
    Put("config.toml", Text(config.substr(0, config.find("memory_bytes")), "pids = 40\n", lines));
    const Outcome run = RunTask(provider.Url("/v1"), {"--json"});
    const Json answer = Json::parse(run.out, nullptr, false);
    EXPECT_EQ(answer["code"], "container_create_failed") << run.out << run.err;
    EXPECT_NE(answer["message"].get<std::string>().find("; [container.sandbox] " + key),
              std::string::npos)
        << answer["message"];
    EXPECT_EQ(answer["delegation_reply"].get<std::string>().find("HTTP"), std::string::npos);
    EXPECT_NE(answer["detail"].get<std::string>().find("HTTP 400"), std::string::npos)
        << answer["detail"];
  }
  EXPECT_TRUE(provider.Log().empty());
}

// It has made the container, and says so only when the client is gone.
TEST_F(TaskTest, SignalEndsATaskWhoseEngineHangsAndNothingIsLeft) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  const std::string pid_file = MakePidFile();
  const std::string engine = socket_;
  std::promise<void> ended;
  std::atomic<int> interrupted = -1;
  FakeEngine proxy([&, gone = ended.get_future().share()](const FakeEngine::Request& request) {
    std::string answer = ForwardToEngine(engine, request);
    if (request.target.find("/containers/create") == std::string::npos) return answer;
    interrupted = SignalTo(pid_file, SIGINT);
    gone.wait();
    return answer;
  });
  ASSERT_EQ(::chmod(fs::path(proxy.socket_path()).parent_path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(proxy.socket_path().c_str(), 0666), 0);
  socket_ = proxy.socket_path();
  Outcome run = RunTask(provider.Url("/v1"), {}, TellingPidTo(pid_file));
  ended.set_value();
  socket_ = engine;
  EXPECT_EQ(interrupted, 0);
  EXPECT_EQ(run.status, 130) << run.err;
  EXPECT_NE(run.err.find("stopped: the sandbox run was stopped"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("/containers/create"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("given up, as asked"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("left behind"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace taskcell::test
