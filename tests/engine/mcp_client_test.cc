// The real claude and codex as clients of `taskcell mcp`: on the host, with a provider on loopback
// whose model calls execute_program.
#include <gmock/gmock.h>
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
using testing::HasSubstr;

constexpr std::string_view kPrograms = "/var/lib/taskcell-test/clis/bin";
constexpr std::string_view kKey = "sk-ant-api03-the-one-real-credential-0123456789";

// Where the script runs can be told by what it sees of this host.
constexpr std::string_view kCode =
    "import os\n"
    "print('answer', 6 * 7, 'host' if os.path.exists('/var/lib/taskcell-test') else 'cell',\n"
    "      sorted(os.listdir('/workspace')))\n";

class McpClientTest : public testing::TestWithParam<std::string> {
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
    fs::create_directories(path_ + "/home");
    fs::create_directories(path_ + "/work");
    std::ofstream(path_ + "/home/config.toml") << "[taskcell]\nengine = \"native\"\n";
  }
  void TearDown() override {
    if (!path_.ends_with("XXXXXX")) fs::remove_all(path_);
  }

  std::string Scenario(const Json& arguments) const {
    const Json scenario = {
        {"steps", {{{"do", "call"}, {"tool", "execute_program"}, {"arguments", arguments}}}},
        {"reply", "It says {0}."}};
    const std::string file = path_ + "/scenario.json";
    std::ofstream(file) << scenario.dump();
    return file;
  }

  std::vector<std::string> ServerArguments() const {
    return {"mcp", "--home", path_ + "/home", "--agent", "worker"};
  }

  std::vector<std::string> Claude() const {
    const Json servers = {
        {"mcpServers",
         {{"taskcell", {{"command", Program("taskcell")}, {"args", ServerArguments()}}}}}};
    return {"claude",
            "-p",
            "Run the program.",
            "--output-format",
            "json",
            "--model",
            "claude-sonnet-4-5",
            "--max-turns",
            "5",
            "--mcp-config",
            servers.dump(),
            "--strict-mcp-config",
            "--allowedTools",
            "mcp__taskcell__execute_program",
            "--permission-mode",
            "dontAsk",
            "--no-session-persistence"};
  }

  std::vector<std::string> Codex(const gateway::ProviderProcess& provider) const {
    return {"codex",
            "exec",
            "--json",
            "--ephemeral",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--model",
            "gpt-5.1-codex",
            "-c",
            "model_provider=\"stand_in\"",
            "-c",
            Text("model_providers.stand_in={name=\"stand-in\",base_url=\"", provider.Url("/v1"),
                 "\",wire_api=\"responses\",env_key=\"OPENAI_API_KEY\"}"),
            "-c",
            Text("mcp_servers.taskcell.command=\"", Program("taskcell"), "\""),
            "-c",
            Text("mcp_servers.taskcell.args=", Json(ServerArguments()).dump()),
            "Run the program."};
  }

  // A client on a busy machine may begin before its server has said what it offers.
  Outcome RunClient(const gateway::ProviderProcess& provider) const {
    constexpr int kAttempts = 5;
    Outcome run;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      run = RunOnce(provider);
      if (run.out.find("The client offers no tool") == std::string::npos) break;
    }
    return run;
  }

  Outcome RunOnce(const gateway::ProviderProcess& provider) const {
    const Outcome owned = test::Run({"chown", "-hR", Text(user_->uid, ":", user_->gid), path_});
    EXPECT_EQ(owned.status, 0) << owned.err;
    EXPECT_EQ(::chmod((path_ + "/home").c_str(), 0700), 0);
    std::vector<std::string> argv = {"env",
                                     Text("PATH=", kPrograms, ":/usr/local/bin:/usr/bin:/bin")};
    const std::vector<std::string> client = GetParam() == "claude" ? Claude() : Codex(provider);
    argv.insert(argv.end(), client.begin(), client.end());
    RunOptions run;
    run.user = user_;
    run.directory = path_ + "/work";
    run.environment = {"ANTHROPIC_BASE_URL=" + provider.Url(),
                       Text("ANTHROPIC_API_KEY=", kKey),
                       Text("OPENAI_API_KEY=", kKey),
                       Text("CODEX_API_KEY=", kKey),
                       Text("CLAUDE_CONFIG_DIR=", path_, "/claude"),
                       Text("CODEX_HOME=", path_, "/work"),
                       "DISABLE_AUTOUPDATER=1",
                       "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"};
    run.timeout_ms = 100000;
    run.in_child = [uid = user_->uid] { EnterDelegatedCgroup(uid); };
    return test::Run(argv, run);
  }

  std::optional<User> user_;
  std::string path_ = "/tmp/taskcell-mcp-XXXXXX";
};

TEST_P(McpClientTest, ItsModelRunsAScriptInACell) {
  gateway::ProviderProcess provider{std::string(kKey),
                                    Scenario({{"language", "python"}, {"code", kCode}})};
  ASSERT_TRUE(provider.IsUp());
  const Outcome run = RunClient(provider);
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("answer 42 cell ['script.py']")) << run.err;
  EXPECT_TRUE(fs::is_empty(path_ + "/home/sandbox/runs"));
  EXPECT_FALSE(fs::exists(path_ + "/home/security_audit.jsonl"));
}

TEST_P(McpClientTest, ItsModelIsToldWhyNothingRan) {
  std::ofstream(path_ + "/home/config.toml", std::ios::app) << "[container.sandbox]\npids = 0\n";
  gateway::ProviderProcess provider{std::string(kKey),
                                    Scenario({{"language", "bash"}, {"code", "echo no"}})};
  ASSERT_TRUE(provider.IsUp());
  const Outcome run = RunClient(provider);
  EXPECT_THAT(run.out, HasSubstr("Script sandbox unavailable (invalid_config): ")) << run.err;
  std::ifstream audit(path_ + "/home/security_audit.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(audit, line));
  EXPECT_EQ(Json::parse(line)["event_type"], "script_sandbox_unavailable");
  EXPECT_EQ(Json::parse(line)["agent_id"], "worker");
}

INSTANTIATE_TEST_SUITE_P(Programs, McpClientTest, testing::Values("claude", "codex"),
                         [](const testing::TestParamInfo<std::string>& each) {
                           return each.param;
                         });

}  // namespace
}  // namespace taskcell::test
