#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "tests/engine/task_fixture.h"
#include "tests/support/background.h"
#include "tests/support/engine_proxy.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace std::chrono_literals;

// `taskcell image` with a real engine and a registry of the test's own, in the engine's network.
class ImageTest : public TaskFixture {
 protected:
  bool needs_own_network() const override { return false; }

  void SetUp() override {
    TaskFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // One program that tells its version, one that will not, one that is no program, one missing.
    const Json spec = {{"files",
                        {{"/usr/bin/claude", {{"from", Program("taskcell-launch")}}},
                         {"/usr/local/bin/grok", {{"from", Program("taskcell-init")}}},
                         {"/usr/local/bin/agy", {{"text", "no program"}}},
                         {"/tmp", {{"dir", true}}}}}};
    registry_ = std::make_unique<Background>(
        std::vector<std::string>{"python3", REGISTRY_PATH, At("requests"), spec.dump()},
        RunOptions{}, At("port"));
    ASSERT_TRUE(WaitFor([&] { return !Trim(ReadText(At("port"))).empty(); }));
    name_ = Text("127.0.0.1:", Trim(ReadText(At("port"))), "/taskcell/sample");
  }

  void TearDown() override {
    for (const char* tag : {":good", ":arm"})
      if (!name_.empty())
        (void)ForwardToEngine(socket_, {"DELETE", "/images/" + name_ + tag + "?force=1", ""});
    registry_.reset();
    TaskFixture::TearDown();
  }

  RunOptions AsUser() const {
    RunOptions run;
    run.user = user_;
    run.environment = {"DOCKER_HOST=unix://" + socket_};
    run.timeout_ms = 100000;
    return run;
  }

  std::vector<std::string> Words(std::vector<std::string> words) const {
    words.insert(words.begin(), Program("taskcell"));
    words.insert(words.end(), {"--home", path_ + "/home"});
    return words;
  }

  Outcome Client(std::vector<std::string> words) const {
    GiveHomeToUser();
    return test::Run(Words(std::move(words)), AsUser());
  }

  Json CheckJson(const std::string& image, int status) const {
    const Outcome run = Client({"image", "check", image, "--json"});
    EXPECT_EQ(run.status, status) << run.out << run.err;
    return Json::parse(run.out, nullptr, false);
  }

  std::string Requests() const { return ReadText(At("requests")); }

  std::unique_ptr<Background> registry_;
  std::string name_;
};

TEST_F(ImageTest, APulledImageIsInTheEnginesStoreAndItsProgramsTellTheirVersions) {
  const Outcome pulled = Client({"image", "pull", name_ + ":good"});
  ASSERT_EQ(pulled.status, 0) << pulled.out << pulled.err;
  EXPECT_THAT(pulled.out, HasSubstr("digest  " + name_ + "@sha256:"));
  EXPECT_THAT(pulled.err, HasSubstr(": Pull complete"));
  EXPECT_THAT(pulled.err, Not(HasSubstr("\x1b")));
  const Json check = CheckJson(name_ + ":good", 0);
  EXPECT_EQ(check["image"], name_ + ":good");
  EXPECT_THAT(pulled.out, HasSubstr(check["digests"][0].get<std::string>()));
  EXPECT_EQ(check["architecture"], "amd64");
  std::map<std::string, std::string> states;
  for (const Json& program : check["programs"]) {
    states[program["runtime"]] = program["state"];
    if (program["runtime"] != "claude") continue;
    EXPECT_THAT(program["text"].get<std::string>(), HasSubstr("taskcell-launch "));
  }
  EXPECT_EQ(states, (std::map<std::string, std::string>{{"antigravity", "missing"},
                                                        {"claude", "runs"},
                                                        {"codex", "missing"},
                                                        {"grok", "fails"},
                                                        {"openai-compat", "unused"}}));
  EXPECT_THAT(test::Run({"curl", "-fsS", "--unix-socket", socket_,
                         "http://engine/containers/json?all=1&filters=%7B%22ancestor%22:%5B%22" +
                             name_ + ":good%22%5D%7D"})
                  .out,
              HasSubstr("[]"));
}

TEST_F(ImageTest, AnAgentsProgramThatIsMissingMakesTheImageUnusable) {
  ASSERT_EQ(Client({"image", "pull", name_ + ":good"}).status, 0);
  Put("agents/a2/agent.toml",
      "[agent]\nname = \"a2\"\n[runtime]\nprovider = \"codex\"\n[container]\nsandbox_enabled = "
      "true\n");
  const Outcome check = Client({"image", "check", name_ + ":good"});
  EXPECT_EQ(check.status, 1) << check.out << check.err;
  EXPECT_THAT(check.out,
              testing::ContainsRegex("codex +missing +/usr/bin/codex .*\\(an agent's\\)"));
  EXPECT_THAT(check.out, HasSubstr("not everything is there"));
}

TEST_F(ImageTest, AnImageForAnotherArchitectureIsNamedAndUnusable) {
  const Outcome pulled = Client({"image", "pull", name_ + ":arm"});
  EXPECT_EQ(pulled.status, 1) << pulled.out << pulled.err;
  EXPECT_THAT(pulled.err, HasSubstr("for arm64, this machine is amd64"));
  const Json check = CheckJson(name_ + ":arm", 1);
  EXPECT_EQ(check["architecture"], "arm64");
  EXPECT_EQ(check["usable"], false);
}

TEST_F(ImageTest, WhatTheRegistryRefusesIsToldWithTheRemedy) {
  const Outcome unknown = Client({"image", "pull", name_ + ":none"});
  EXPECT_EQ(unknown.status, 1) << unknown.out;
  EXPECT_THAT(unknown.err, HasSubstr("pull_failed: "));
  EXPECT_THAT(unknown.err, HasSubstr("check"));
  const Outcome half = Client({"image", "pull", name_ + ":half"});
  EXPECT_EQ(half.status, 1) << half.out;
  EXPECT_THAT(half.err, HasSubstr("pull_failed: "));
  EXPECT_THAT(half.out, IsEmpty());
  registry_.reset();
  const Outcome down = Client({"image", "pull", name_ + ":good"});
  EXPECT_EQ(down.status, 1) << down.out;
  EXPECT_THAT(down.err, HasSubstr("nothing answers at the registry's address"));
}

TEST_F(ImageTest, APullThatIsInterruptedEnds) {
  GiveHomeToUser();
  Background pull(Words({"image", "pull", name_ + ":slow"}), AsUser(), At("output"));
  ASSERT_TRUE(WaitFor([&] {
    return ReadText(At("output")).find("Pulling fs layer") != std::string::npos;
  })) << ReadText(At("output"));
  pull.Signal(SIGINT);
  EXPECT_EQ(pull.Wait(20s), 130) << ReadText(At("output"));
}

// The one exception is named by hand; nothing else ever asks a registry.
TEST_F(ImageTest, NoTaskNoScriptNoCheckAndNoDoctorPulls) {
  Put("config.toml",
      Text("[taskcell]\nengine = \"docker\"\n[container.sandbox]\nimage = \"", name_, ":good\"\n"));
  const Outcome check = Client({"image", "check"});
  EXPECT_EQ(check.status, 1) << check.out;
  EXPECT_THAT(check.err, HasSubstr("image_missing"));
  EXPECT_THAT(check.err, HasSubstr("taskcell image pull " + name_ + ":good"));
  EXPECT_EQ(RunClient("http://127.0.0.1:9", {}).status, 3);
  const Outcome script = Client({"script", "--language", "bash", "--json", "/dev/null"});
  EXPECT_EQ(script.status, 125) << script.err;
  const Json answer = Json::parse(script.out, nullptr, false);
  EXPECT_EQ(answer["code"], "image_missing") << script.out;
  EXPECT_EQ(answer["message"],
            Text("Script sandbox unavailable (image_missing): the sandbox image ", name_,
                 ":good is not present locally. The script was not run. The script sandbox needs a "
                 "running Docker and the image ",
                 name_, ":good present locally; run `docker pull ", name_,
                 ":good` (it is never pulled automatically)."));
  EXPECT_THAT(ReadText(path_ + "/home/security_audit.jsonl"),
              HasSubstr(R"("event_type":"script_sandbox_unavailable","agent_id":"default",)"
                        R"("severity":"warning","details":{"language":"bash",)"
                        R"("reason":"image_missing",)"));
  for (const char* word : {"doctor", "sweep"}) (void)Client({word});
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_EQ(Client({"image", "pull"}).status, 0);
  EXPECT_THAT(Requests(), HasSubstr("/v2/taskcell/sample/manifests/good"));
}

// What runs by itself cannot: it is not linked with it.
TEST_F(ImageTest, OnlyTheClientKnowsHowToPull) {
  EXPECT_THAT(ReadText(Program("taskcell")), HasSubstr("fromImage="));
  for (const char* name : {"taskcell-gateway", "taskcell-probe", "taskcell-launch"}) {
    const std::string program = ReadText(Program(name));
    ASSERT_FALSE(program.empty()) << name;
    EXPECT_EQ(program.find("fromImage="), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace taskcell::test
