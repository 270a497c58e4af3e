// The real claude and codex (and our own loop) at work in a real cell, through `taskcell run`, with
// a provider on loopback that speaks TLS and makes them use their file tools. Runs on
// each engine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "launcher/base/text.h"
#include "tests/engine/real_task_fixture.h"
#include "tests/support/tls_certificate.h"
#include "tests/support/wait_for.h"

namespace taskcell {
namespace {

using Json = nlohmann::json;

struct RealProgram {
  std::string name;  // of the case
  test::RealAgent agent;
  std::string process;             // what /proc/PID/comm begins with
  std::string key_header;          // where the provider must find the credential
  std::set<std::string> requests;  // all it was seen to make, and so all that is relayed
};

void PrintTo(const RealProgram& program, std::ostream* out) { *out << program.name; }

class RealProgramTest : public test::RealTaskFixture,
                        public testing::WithParamInterface<RealProgram> {
 protected:
  void SetUp() override {
    RealTaskFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    certificate_ = test::MakeCertificate(path(), "localhost");
    test::RealAgent agent = GetParam().agent;
    agent.ca_file = certificate_;
    MakeHome(agent);
    value_ = Random("value-");
    (void)Put("agents/a1/wiki/value.txt", value_);
    std::string lines;
    for (int line = 0; line < 2500; ++line) lines += "as many tokens as claude counts before\n";
    (void)Put("agents/a1/wiki/long.txt", lines);
  }

  // Reads the value with a file tool, writes it elsewhere, and reads it again; before that the
  // provider waits for HoldName() + ".go", so that the cell can be searched.
  std::string Scenario(bool holds, bool reads_long = false) const {
    Json last = {{"do", "shell"}, {"command", "cat /workspace/copy.txt"}};
    if (holds) last["hold"] = HoldName();
    Json scenario = {{"steps",
                      {{{"do", "read"}, {"path", "/agent/wiki/value.txt"}},
                       {{"do", "write"}, {"path", "/workspace/copy.txt"}, {"content", "copy {0}"}},
                       last}},
                     {"reply", "It says {0}, then {last}."}};
    if (reads_long) {
      scenario["steps"].push_back({{"do", "read"}, {"path", "/agent/wiki/long.txt"}});
      scenario["reply"] =
          "It says {0}.";  // a reply longer than a pipe holds claude cuts as it ends
    }
    const std::string file = path() + "/scenario.json";
    std::ofstream(file) << scenario.dump();
    return file;
  }

  std::string HoldName() const { return path() + "/search"; }

  // Looks into the cell while the task runs.
  test::Outcome Scan() const {
    std::string first = "0";
    std::string count = "0";
    std::ifstream ranges("/etc/subuid");
    for (std::string line; std::getline(ranges, line);) {
      std::vector<std::string_view> parts = Split(line, ':');
      if (parts.size() != 3 || parts[0] != user().name) continue;
      first = parts[1];
      count = parts[2];
    }
    test::RunOptions run;
    run.environment = {"REAL=" + key(), "PLACEHOLDER=taskcell-placeholder-not-a-credential",
                       Text("PROMPT=", kPromptMark), "VALUE=" + value_};
    run.timeout_ms = 90000;
    return test::Run(
        {"python3", SCAN_CELL_PATH, "--name", GetParam().process, "--uid", Text(user().uid),
         "--sub-uid", first, count, "--find", "REAL", "PLACEHOLDER", "PROMPT", "VALUE"},
        run);
  }

  std::string certificate_;
  std::string value_;
};

bool Mentions(const Json& places, std::string_view what) {
  for (const Json& place : places) {
    if (place.get<std::string>().find(what) != std::string::npos) return true;
  }
  return false;
}

TEST_P(RealProgramTest, WorksInTheCellWithoutNetworkAndWithoutTheCredential) {
  gateway::ProviderProcess provider(key(), Scenario(true), certificate_);
  ASSERT_TRUE(provider.IsUp());
  test::Outcome seen;
  std::thread scan([this, &seen] {
    if (test::WaitFor([this] { return ::access((HoldName() + ".held").c_str(), F_OK) == 0; }))
      seen = Scan();
    std::ofstream(HoldName() + ".go") << "";
  });
  test::Outcome run = RunTask(provider);
  scan.join();
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["reply"], Text("It says ", value_, ", then copy ", value_, ".")) << run.out;
  EXPECT_EQ(answer["receipt"]["verified"], true);
  EXPECT_EQ(answer["receipt"]["seen"]["interfaces"], Json({"lo"}));
  EXPECT_EQ(run.out.find(key()), std::string::npos);

  ASSERT_EQ(seen.status, 0) << seen.err << run.out;
  const Json cell = Json::parse(seen.out);
  EXPECT_EQ(cell["interfaces"], Json({"lo"}));
  EXPECT_EQ(cell["found"]["REAL"], Json::array()) << seen.out;
  // Control: the search does find what is there.
  const std::string& process = GetParam().process;
  EXPECT_TRUE(Mentions(cell["found"]["PLACEHOLDER"], "environ of " + process)) << seen.out;
  EXPECT_TRUE(Mentions(cell["found"]["PROMPT"], "memory of " + process)) << seen.out;
  EXPECT_TRUE(Mentions(cell["found"]["VALUE"], "/agent/wiki/value.txt")) << seen.out;
  EXPECT_TRUE(Mentions(cell["found"]["VALUE"], "/workspace/copy.txt")) << seen.out;
  EXPECT_FALSE(Mentions(cell["found"]["PROMPT"], "environ")) << seen.out;
}

TEST_P(RealProgramTest, TheProviderSeesTheRealCredentialOnceAndNoPlaceholder) {
  gateway::ProviderProcess provider(key(), Scenario(false, true), certificate_);
  ASSERT_TRUE(provider.IsUp());
  test::Outcome run = RunTask(provider);
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json receipt = Json::parse(run.out)["receipt"];
  EXPECT_EQ(receipt["evidence_differs"], Json::array()) << "what it tells is what was recorded";
  EXPECT_EQ(receipt["egress"]["record"]["refusals"], Json::array()) << "it needs nothing else";
  std::set<std::string> requests;
  for (const Json& request : receipt["egress"]["record"]["requests"])
    requests.insert(
        Text(request["method"].get<std::string>(), ' ', request["path"].get<std::string>()));
  EXPECT_EQ(requests, GetParam().requests);
  std::vector<gateway::LoggedRequest> log = provider.Log();
  ASSERT_GE(log.size(), 4U);
  for (const gateway::LoggedRequest& request : log) {
    EXPECT_TRUE(request.authorized) << request.method << ' ' << request.path;
    EXPECT_EQ(request.All(GetParam().key_header).size(), 1U);
    for (const auto& [name, value] : request.headers) {
      EXPECT_EQ(value.find("placeholder"), std::string::npos) << name;
    }
    EXPECT_EQ(request.body.find("taskcell-placeholder"), std::string::npos);
    EXPECT_EQ(request.body.find(key()), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, RealProgramTest,
    testing::Values(RealProgram{"claude",
                                {"claude", "claude-sonnet-4-5", "anthropic", "sk-ant-api03-"},
                                "claude",
                                "x-api-key",
                                {"HEAD /", "POST /v1/messages", "POST /v1/messages/count_tokens"}},
                    RealProgram{"claude_with_a_stored_token",
                                {"claude", "sonnet", "anthropic", "sk-ant-oat01-", true},
                                "claude",
                                "authorization",
                                {"HEAD /", "POST /v1/messages", "POST /v1/messages/count_tokens"}},
                    RealProgram{"codex",
                                {"codex", "gpt-5.1-codex", "openai", "sk-"},
                                "codex",
                                "authorization",
                                {"POST /v1/responses"}},
                    RealProgram{"codex_in_its_code_mode",
                                {"codex", "gpt-5.6-sol", "openai", "sk-"},
                                "codex",
                                "authorization",
                                {"POST /v1/responses"}},
                    RealProgram{"openai_compat",
                                {"openai_compat", "openai/test-model", "openai", "sk-"},
                                "loop",
                                "authorization",
                                {"POST /v1/chat/completions"}}),
    [](const testing::TestParamInfo<RealProgram>& each) { return each.param.name; });

}  // namespace
}  // namespace taskcell
