// The real claude and codex (and our own loop) at work in a real cell, through `taskcell run`, with
// a provider on loopback that makes them use their file tools. Compiled once for each engine.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "launcher/base/text.h"
#include "tests/integration/gateway/egress/provider_process.h"
#include "tests/support/fixture.h"

namespace taskcell {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kState = "/var/lib/taskcell-test";
constexpr std::string_view kImage = "taskcell-test/cli:1";  // make_cli_image.sh
constexpr std::string_view kPromptMark = "prompt-mark-5f1c9e";

std::string Random(std::string_view prefix) {
  std::ifstream random("/dev/urandom", std::ios::binary);
  std::string text(prefix);
  for (int i = 0; i < 32; ++i) {
    text += "0123456789abcdef"[static_cast<unsigned char>(random.get()) % 16];
  }
  return text;
}

// One of the programs: how its agent is set up, and under which name it runs.
struct Program {
  std::string id;  // [runtime] provider
  std::string model;
  std::string process;  // what /proc/PID/comm begins with
  std::string account;  // [[accounts]] provider
  std::string key_prefix;
  std::string key_header;  // where the provider must find the credential
};

void PrintTo(const Program& program, std::ostream* out) { *out << program.id; }

class RealProgramTest : public testing::TestWithParam<Program> {
 protected:
  static bool OnDocker() { return std::string_view(TASK_ENGINE) == "docker"; }

  void SetUp() override {
    user_ = test::TestUser();
    TASKCELL_REQUIRE(user_.has_value(), "needs the user taskcell-test (fixture.sh up)");
    TASKCELL_REQUIRE(::geteuid() == 0,
                     "needs root, to become the test user and to look into cells");
    TASKCELL_REQUIRE(fs::exists(Text(kState, "/cli-root/usr/bin/claude")),
                     "needs claude and codex (install_clis.sh, make_cli_image.sh)");
    if (OnDocker()) {
      socket_ = test::DockerSocket();
      TASKCELL_REQUIRE(!socket_.empty(), "needs a Docker engine (fixture.sh engine-up)");
      test::Outcome image = test::Run({"curl", "-fsS", "--unix-socket", socket_,
                                       Text("http://engine/images/", kImage, "/json")});
      TASKCELL_REQUIRE(image.status == 0, "needs the image of make_cli_image.sh");
    }
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
    key_ = Random(GetParam().key_prefix);
    value_ = Random("value-");
    Put("config.toml", Config());
    Put("agents/a1/agent.toml",
        Text("[agent]\nname = \"a1\"\n[runtime]\nprovider = \"", GetParam().id,
             "\"\n[model]\npreferred = \"", GetParam().model,
             "\"\n[container]\nsandbox_enabled = true\nnetwork_access = true\ntimeout_ms = "
             "90000\n"));
    Put("agents/a1/SOUL.md", "Be brief.");
    Put("agents/a1/wiki/value.txt", value_);
  }

  void TearDown() override {
    if (path_.ends_with("XXXXXX")) return;
    const std::string runs = path_ + "/home/sandbox/runs";
    EXPECT_TRUE(!fs::exists(runs) || fs::is_empty(runs)) << "a run directory was left";
    if (!socket_.empty()) {
      test::Outcome left = test::Run({"curl", "-fsSG", "--unix-socket", socket_,
                                      "http://engine/containers/json?all=1", "--data-urlencode",
                                      "filters={\"ancestor\":[\"" + std::string(kImage) + "\"]}"});
      EXPECT_EQ(Trim(left.out), "[]") << "a container was left";
    }
    fs::remove_all(path_);
  }

  std::string Config() const {
    std::string engine = OnDocker() ? "" : Text("root = \"", kState, "/cli-root\"\n");
    std::string image = OnDocker() ? Text("image = \"", kImage, "\"\n") : "";
    return Text("[taskcell]\nengine = \"", TASK_ENGINE, "\"\n", engine, "[container.sandbox]\n",
                image, "memory_bytes = 2147483648\n", "[[accounts]]\nid = \"real\"\nprovider = \"",
                GetParam().account, "\"\napi_key = \"", key_, "\"\n");
  }

  void Put(const std::string& name, std::string_view content) const {
    const fs::path file = fs::path(path_) / "home" / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }

  // Reads the value with a file tool, writes it elsewhere, waits so that the cell can be searched,
  // and reads it again.
  std::string Scenario() const {
    Json scenario = {{"steps",
                      {{{"do", "read"}, {"path", "/agent/wiki/value.txt"}},
                       {{"do", "write"}, {"path", "/workspace/copy.txt"}, {"content", "copy {0}"}},
                       {{"do", "shell"}, {"command", "sleep 5; cat /workspace/copy.txt"}}}},
                     {"reply", "It says {0}, then {last}."}};
    const std::string file = path_ + "/scenario.json";
    std::ofstream(file) << scenario.dump();
    return file;
  }

  test::Outcome RunTask(const gateway::ProviderProcess& provider) const {
    test::Outcome owned =
        test::Run({"chown", "-R", Text(user_->uid, ":", user_->gid), path_ + "/home"});
    EXPECT_EQ(owned.status, 0) << owned.err;
    EXPECT_EQ(::chmod((path_ + "/home").c_str(), 0700), 0);
    test::RunOptions run;
    run.user = user_;
    run.environment = {"ANTHROPIC_BASE_URL=" + provider.Url(),
                       "OPENAI_BASE_URL=" + provider.Url("/v1"), "DOCKER_HOST=unix://" + socket_};
    run.timeout_ms = 100000;
    run.in_child = [uid = user_->uid] { test::EnterDelegatedCgroup(uid); };
    return test::Run({test::Program("taskcell"), "run", "a1", Text("Copy the value. ", kPromptMark),
                      "--home", path_ + "/home", "--json"},
                     run);
  }

  // Looks into the cell while the task runs.
  test::Outcome Scan() const {
    std::string first = "0";
    std::string count = "0";
    std::ifstream ranges("/etc/subuid");
    for (std::string line; std::getline(ranges, line);) {
      std::vector<std::string_view> parts = Split(line, ':');
      if (parts.size() != 3 || parts[0] != user_->name) continue;
      first = parts[1];
      count = parts[2];
    }
    test::RunOptions run;
    run.environment = {"REAL=" + key_, "PLACEHOLDER=taskcell-placeholder-not-a-credential",
                       Text("PROMPT=", kPromptMark), "VALUE=" + value_};
    run.timeout_ms = 90000;
    return test::Run({"python3", SCAN_CELL_PATH, "--name", GetParam().process, "--uid",
                      Text(user_->uid), "--sub-uid", first, count, "--find", "REAL", "PLACEHOLDER",
                      "PROMPT", "VALUE", "--stop", path_ + "/ended"},
                     run);
  }

  std::optional<test::User> user_;
  std::string path_ = "/tmp/taskcell-real-XXXXXX";
  std::string socket_;
  std::string key_;
  std::string value_;
};

bool Mentions(const Json& places, std::string_view what) {
  for (const Json& place : places) {
    if (place.get<std::string>().find(what) != std::string::npos) return true;
  }
  return false;
}

TEST_P(RealProgramTest, WorksInTheCellWithoutNetworkAndWithoutTheCredential) {
  gateway::ProviderProcess provider(key_, Scenario());
  ASSERT_TRUE(provider.IsUp());
  test::Outcome seen;
  std::thread scan([this, &seen] { seen = Scan(); });
  test::Outcome run = RunTask(provider);
  std::ofstream(path_ + "/ended") << "";
  scan.join();
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["reply"], Text("It says ", value_, ", then copy ", value_, ".")) << run.out;
  EXPECT_EQ(answer["receipt"]["verified"], true);
  EXPECT_EQ(answer["receipt"]["seen"]["interfaces"], Json({"lo"}));
  EXPECT_EQ(run.out.find(key_), std::string::npos);

  ASSERT_EQ(seen.status, 0) << seen.err << run.out;
  const Json cell = Json::parse(seen.out);
  EXPECT_EQ(cell["interfaces"], Json({"lo"}));
  EXPECT_EQ(cell["found"]["REAL"], Json::array()) << seen.out;
  // Control: the search does find what is there.
  EXPECT_TRUE(Mentions(cell["found"]["PLACEHOLDER"], "environ of " + GetParam().process))
      << seen.out;
  EXPECT_TRUE(Mentions(cell["found"]["PROMPT"], "memory of " + GetParam().process)) << seen.out;
  EXPECT_TRUE(Mentions(cell["found"]["VALUE"], "/agent/wiki/value.txt")) << seen.out;
  EXPECT_TRUE(Mentions(cell["found"]["VALUE"], "/workspace/copy.txt")) << seen.out;
  // The prompt is in no environment and no file.
  EXPECT_FALSE(Mentions(cell["found"]["PROMPT"], "environ")) << seen.out;
}

TEST_P(RealProgramTest, TheProviderSeesTheRealCredentialOnceAndNoPlaceholder) {
  gateway::ProviderProcess provider(key_, Scenario());
  ASSERT_TRUE(provider.IsUp());
  test::Outcome run = RunTask(provider);
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  std::vector<gateway::LoggedRequest> log = provider.Log();
  ASSERT_GE(log.size(), 4U);
  for (const gateway::LoggedRequest& request : log) {
    EXPECT_TRUE(request.authorized) << request.method << ' ' << request.path;
    EXPECT_EQ(request.All(GetParam().key_header).size(), 1U);
    for (const auto& [name, value] : request.headers) {
      EXPECT_EQ(value.find("placeholder"), std::string::npos) << name;
    }
    EXPECT_EQ(request.body.find("taskcell-placeholder"), std::string::npos);
    EXPECT_EQ(request.body.find(key_), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, RealProgramTest,
                         testing::Values(Program{"claude", "claude-sonnet-4-5", "claude",
                                                 "anthropic", "sk-ant-api03-", "x-api-key"},
                                         Program{"codex", "gpt-5.1-codex", "codex", "openai", "sk-",
                                                 "authorization"},
                                         Program{"openai_compat", "openai/test-model", "loop",
                                                 "openai", "sk-", "authorization"}),
                         [](const testing::TestParamInfo<Program>& each) { return each.param.id; });

}  // namespace
}  // namespace taskcell
