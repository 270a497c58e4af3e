// The real claude and codex on the host, through `taskcell run` of an agent whose sandbox is off,
// with a provider on loopback that makes them use their file tools.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launcher/base/text.h"
#include "tests/integration/gateway/egress/provider_process.h"
#include "tests/support/fixture.h"
#include "tests/support/own_network.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kPrograms = "/var/lib/taskcell-test/clis/bin";
constexpr std::string_view kKey = "sk-ant-api03-the-one-real-credential-0123456789";

struct HostProgram {
  std::string runtime;
  std::string model;
  std::string provider;
};

void PrintTo(const HostProgram& program, std::ostream* out) { *out << program.runtime; }

class HostProgramTest : public testing::TestWithParam<HostProgram> {
 protected:
  void SetUp() override {
    user_ = TestUser();
    TASKCELL_REQUIRE(user_.has_value(), "needs the user taskcell-test (fixture.sh up)");
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become the test user");
    TASKCELL_ENTER_OWN_NETWORK();
    TASKCELL_REQUIRE(fs::exists(Text(kPrograms, "/claude")),
                     "needs claude and codex (install_clis.sh)");
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
    Put("config.toml", Text("[[accounts]]\nid = \"real\"\nprovider = \"", GetParam().provider,
                            "\"\napi_key = \"secret://env/REAL_KEY\"\n"));
    Put("agents/a1/SOUL.md", "Be brief.");
    Put("agents/a1/notes.txt", "the value of the notes");
    SwitchSandbox(false);
  }
  void TearDown() override {
    if (!path_.ends_with("XXXXXX")) fs::remove_all(path_);
  }

  void Put(const std::string& name, std::string_view content) const {
    const fs::path file = fs::path(path_) / "home" / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }

  void SwitchSandbox(bool on) const {
    Put("agents/a1/agent.toml",
        Text("[agent]\nname = \"a1\"\n[runtime]\nprovider = \"", GetParam().runtime,
             "\"\n[model]\npreferred = \"", GetParam().model, "\"\n[container]\nsandbox_enabled = ",
             on ? "true" : "false", "\nnetwork_access = false\ntimeout_ms = 90000\n"));
  }

  std::string AgentFile(std::string_view name) const {
    return Text(path_, "/home/agents/a1/", name);
  }

  // Reads a file of the agent's directory and writes another one there.
  std::string Scenario() const {
    const Json scenario = {
        {"steps",
         {{{"do", "read"}, {"path", AgentFile("notes.txt")}},
          {{"do", "write"}, {"path", AgentFile("made.txt")}, {"content", "made on the host"}}}},
        {"reply", "It says {0}."}};
    const std::string file = path_ + "/scenario.json";
    std::ofstream(file) << scenario.dump();
    return file;
  }

  Outcome RunTask(const gateway::ProviderProcess& provider,
                  std::vector<std::string> options) const {
    const Outcome owned = test::Run({"chown", "-hR", Text(user_->uid, ":", user_->gid), path_});
    EXPECT_EQ(owned.status, 0) << owned.err;
    EXPECT_EQ(::chmod((path_ + "/home").c_str(), 0700), 0);
    std::vector<std::string> argv = {"env",
                                     Text("PATH=", kPrograms, ":/usr/local/bin:/usr/bin:/bin"),
                                     Program("taskcell"),
                                     "run",
                                     "a1",
                                     "Read the notes.",
                                     "--home",
                                     path_ + "/home",
                                     "--json"};
    argv.insert(argv.end(), options.begin(), options.end());
    RunOptions run;
    run.user = user_;
    run.environment = {"ANTHROPIC_BASE_URL=" + provider.Url(),
                       "OPENAI_BASE_URL=" + provider.Url("/v1"), Text("REAL_KEY=", kKey),
                       Text("CLAUDE_CONFIG_DIR=", path_, "/claude")};
    run.timeout_ms = 100000;
    return test::Run(argv, run);
  }

  std::optional<User> user_;
  std::string path_ = "/tmp/taskcell-host-XXXXXX";
};

TEST_P(HostProgramTest, WorksInTheAgentsDirectoryWithTheAccountOfTheRotator) {
  gateway::ProviderProcess provider{std::string(kKey), Scenario()};
  ASSERT_TRUE(provider.IsUp());
  const Outcome run = RunTask(provider, {});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["ran_on_host"], true);
  EXPECT_NE(answer["reply"].get<std::string>().find("the value of the notes"), std::string::npos)
      << run.out;
  EXPECT_TRUE(fs::exists(AgentFile("made.txt"))) << "what it does on the host stays";
  EXPECT_NE(run.err.find("the task ran on the host, without isolation"), std::string::npos);
  EXPECT_EQ(run.out.find(kKey), std::string::npos);
  EXPECT_FALSE(fs::exists(path_ + "/home/security_audit.jsonl"));
  EXPECT_FALSE(fs::exists(path_ + "/home/sandbox"));
  const std::vector<gateway::LoggedRequest> log = provider.Log();
  ASSERT_FALSE(log.empty());
  for (const gateway::LoggedRequest& request : log) {
    if (request.method == "HEAD") continue;  // claude looks whether anybody is there
    EXPECT_TRUE(request.authorized) << request.method << ' ' << request.path;
  }
}

TEST_P(HostProgramTest, RunsThroughTheOpenHatchWithBothEvents) {
  gateway::ProviderProcess provider{std::string(kKey), Scenario()};
  ASSERT_TRUE(provider.IsUp());
  SwitchSandbox(true);  // and network_access is false
  std::ofstream(path_ + "/home/config.toml", std::ios::app)
      << "[container.sandbox]\nwhen_unavailable = \"run_unsandboxed\"\n";
  const Outcome run = RunTask(provider, {});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_EQ(Json::parse(run.out)["ran_on_host"], true);
  std::ifstream audit(path_ + "/home/security_audit.jsonl");
  std::vector<std::string> events;
  for (std::string line; std::getline(audit, line);)
    events.push_back(Json::parse(line)["event_type"]);
  EXPECT_EQ(events,
            (std::vector<std::string>{"task_sandbox_unavailable", "task_sandbox_bypassed"}));
}

TEST_P(HostProgramTest, ARejectedCredentialIsTold) {
  gateway::ProviderProcess provider{"sk-ant-api03-another-credential-0123456789", Scenario()};
  ASSERT_TRUE(provider.IsUp());
  const Outcome run = RunTask(provider, {});
  EXPECT_EQ(run.status, 1) << run.out << run.err;
  EXPECT_EQ(Json::parse(run.out)["code"], "auth_failed") << run.out;
  EXPECT_EQ(run.out.find(kKey), std::string::npos);
}

TEST_P(HostProgramTest, RequiringACellStartsNothing) {
  gateway::ProviderProcess provider{std::string(kKey), Scenario()};
  ASSERT_TRUE(provider.IsUp());
  const Outcome run = RunTask(provider, {"--require-cell"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_EQ(Json::parse(run.out)["code"], "cell_required");
  EXPECT_TRUE(provider.Log().empty());
}

INSTANTIATE_TEST_SUITE_P(Programs, HostProgramTest,
                         testing::Values(HostProgram{"claude", "claude-sonnet-4-5", "anthropic"},
                                         HostProgram{"codex", "gpt-5.1-codex", "openai"}),
                         [](const testing::TestParamInfo<HostProgram>& each) {
                           return each.param.runtime;
                         });

}  // namespace
}  // namespace taskcell::test
