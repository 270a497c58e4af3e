// Refusals as an operator meets them: the installed client and a real engine, no world of a test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/engine/task_fixture.h"

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

}  // namespace
}  // namespace taskcell::test
