// What the real programs do when a limit is used up: they ask once, and stop.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "launcher/base/text.h"
#include "tests/integration/gateway/egress/broker_fixture.h"
#include "tests/support/fixture.h"
#include "tests/support/own_network.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

constexpr const char* kPrograms = "/var/lib/taskcell-test/clis/bin/";

class RealClientTest : public BrokerTest {
 protected:
  static void SetUpTestSuite() {
    (void)test::EnterOwnNetwork();  // ignoring: SetUp tells
    BrokerTest::SetUpTestSuite();   // in that network, too
  }

  void SetUp() override {
    TASKCELL_ENTER_OWN_NETWORK();
    TASKCELL_REQUIRE(::access(Text(kPrograms, "codex").c_str(), X_OK) == 0,
                     "needs claude and codex (install_clis.sh)");
    BrokerTest::SetUp();
  }

  // Runs a program whose requests are one too many from the first: how many it made.
  std::ptrdiff_t Ask(WireApi api, std::function<std::vector<std::string>(uint16_t)> command,
                     const std::string& model, std::string* output) {
    Route route = MakeRoute(api);
    route.models = {model};
    route.limits.requests = 0;
    Cell cell = Attach(std::move(route));
    const test::TempDirectory home("client", "/var/tmp");
    test::RunOptions run;
    run.environment = {"HOME=" + home.path(),
                       "CODEX_HOME=" + home.path(),
                       "KEY=sk-placeholder",
                       "ANTHROPIC_API_KEY=sk-ant-api03-placeholder",
                       Text("ANTHROPIC_BASE_URL=http://127.0.0.1:", cell.port),
                       "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
                       "IS_SANDBOX=1"};
    run.timeout_ms = 100000;
    const test::Outcome done = test::Run(command(cell.port), run);
    EXPECT_NE(done.status, 0) << done.out;
    *output = done.out + done.err;
    const EgressRecord record = cell.handle->Detach();
    return std::count_if(record.requests.begin(), record.requests.end(), [](const auto& request) {
      EXPECT_EQ(request.code, "egress_requests");
      return request.method == "POST";
    });
  }
};

TEST_F(RealClientTest, ClaudeAsksOnceAndTellsWhy) {
  std::string output;
  EXPECT_EQ(Ask(
                WireApi::kAnthropicMessages,
                [](uint16_t) {
                  return std::vector<std::string>{Text(kPrograms, "claude"),
                                                  "-p",
                                                  "--output-format",
                                                  "stream-json",
                                                  "--verbose",
                                                  "--model",
                                                  "claude-sonnet-4-5",
                                                  "hi"};
                },
                "claude-sonnet-4-5", &output),
            1)
      << output;
  EXPECT_NE(output.find("the task has made all the requests it may"), std::string::npos) << output;
}

TEST_F(RealClientTest, CodexAsksOnceAndTellsWhy) {
  std::string output;
  EXPECT_EQ(Ask(
                WireApi::kOpenAiResponses,
                [](uint16_t port) {
                  return std::vector<std::string>{
                      Text(kPrograms, "codex"),
                      "exec",
                      "--json",
                      "--skip-git-repo-check",
                      "-c",
                      "model_provider=\"t\"",
                      "-c",
                      Text("model_providers.t={name=\"t\",base_url=\"http://127.0.0.1:", port,
                           "/v1\",env_key=\"KEY\",wire_api=\"responses\"}"),
                      "-m",
                      "gpt-5.1-codex",
                      "hi"};
                },
                "gpt-5.1-codex", &output),
            1)
      << output;
  EXPECT_NE(output.find("the task has made all the requests it may"), std::string::npos) << output;
}

}  // namespace
}  // namespace taskcell::gateway
