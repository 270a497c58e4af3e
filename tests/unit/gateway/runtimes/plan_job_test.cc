#include "gateway/runtimes/plan_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace taskcell::gateway {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

JobRequest Request(Runtime runtime) {
  JobRequest request;
  request.runtime = runtime;
  request.executable = "/usr/bin/program";
  request.model = "model-1";
  request.max_turns = 7;
  request.prompt = "the secret prompt";
  request.broker_port = 4321;
  request.timeout_ms = 5000;
  return request;
}

constexpr Runtime kRunnable[] = {Runtime::kClaude, Runtime::kCodex, Runtime::kOpenAiCompat};

// The value of an option, or "" when it is not there.
std::string After(const std::vector<std::string>& argv, std::string_view option) {
  auto at = std::find(argv.begin(), argv.end(), option);
  return at == argv.end() || at + 1 == argv.end() ? "" : *(at + 1);
}

TEST(PlanJobTest, ThePromptIsStandardInputAndNothingElse) {
  for (Runtime runtime : kRunnable) {
    cell::Job job = PlanJob(Request(runtime)).value();
    EXPECT_EQ(job.input, "the secret prompt");
    EXPECT_EQ(job.stdio, cell::JobStdio::kRelay);
    EXPECT_THAT(job.argv, Not(Contains(testing::HasSubstr("secret"))));
    EXPECT_THAT(job.environment, Not(Contains(testing::HasSubstr("secret"))));
    EXPECT_EQ(job.loopback_port, 4321);
    EXPECT_EQ(job.timeout_ms, 5000U);
    EXPECT_EQ(job.home, "/tmp/dudu-private/home");
  }
}

TEST(PlanJobTest, OnlyWhereTheNetworkIsOpenTheJobMayConnectToMoreThanTheBroker) {
  JobRequest request = Request(Runtime::kClaude);
  request.tunnel_port = 4322;
  const cell::Job closed = PlanJob(request).value();
  EXPECT_EQ(closed.loopback_port, 4321);
  EXPECT_EQ(closed.tunnel_port, 4322);
  request.open_network = true;
  const cell::Job open = PlanJob(request).value();
  EXPECT_EQ(open.loopback_port, 0) << "0: not limited";
  EXPECT_EQ(open.environment, closed.environment);
  EXPECT_EQ(open.argv, closed.argv);
}

TEST(PlanJobTest, TheEnvironmentNamesEachVariableOnceAndPointsAtTheBroker) {
  for (Runtime runtime : kRunnable) {
    cell::Job job = PlanJob(Request(runtime)).value();
    std::set<std::string> names;
    for (const std::string& entry : job.environment) {
      EXPECT_TRUE(names.insert(entry.substr(0, entry.find('='))).second) << entry;
    }
    EXPECT_THAT(job.environment, Contains("PATH=/usr/local/bin:/usr/bin:/bin"));
    EXPECT_THAT(job.environment, Contains("HOME=/tmp/dudu-private/home"));
    EXPECT_THAT(job.environment, Contains("TMPDIR=/tmp/dudu-private/tmp"));
    EXPECT_THAT(job.environment, Contains("LANG=C.UTF-8"));
  }
  EXPECT_THAT(PlanJob(Request(Runtime::kClaude))->environment,
              Contains("ANTHROPIC_BASE_URL=http://127.0.0.1:4321"));
  EXPECT_THAT(PlanJob(Request(Runtime::kOpenAiCompat))->environment,
              Contains("OPENAI_BASE_URL=http://127.0.0.1:4321/v1"));
  EXPECT_THAT(PlanJob(Request(Runtime::kCodex))->argv,
              Contains("model_providers.taskcell.base_url=\"http://127.0.0.1:4321/v1\""));
}

TEST(PlanJobTest, ClaudeGetsOnlyFileAndShellToolsAndEveryModelVariableIsPinned) {
  cell::Job job = PlanJob(Request(Runtime::kClaude)).value();
  EXPECT_EQ(After(job.argv, "--tools"), "Read,Write,Edit,Glob,Grep,Bash");
  EXPECT_EQ(After(job.argv, "--allowedTools"), "Read,Write,Edit,Glob,Grep,Bash");
  EXPECT_EQ(After(job.argv, "--model"), "model-1");
  EXPECT_EQ(After(job.argv, "--max-turns"), "7");
  EXPECT_EQ(After(job.argv, "--mcp-config"), "/tmp/dudu-private/home/empty-mcp.json");
  EXPECT_EQ(After(job.argv, "--setting-sources"), "");
  ASSERT_EQ(job.files.size(), 1U);
  EXPECT_EQ(job.files[0].path, "empty-mcp.json");
  for (const char* name :
       {"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_FABLE_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"}) {
    EXPECT_THAT(job.environment, Contains(std::string(name) + "=model-1"));
  }
  EXPECT_THAT(job.environment, Contains("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"));
}

TEST(PlanJobTest, ThePlaceholderHasTheShapeOfTheCredential) {
  JobRequest request = Request(Runtime::kClaude);
  EXPECT_THAT(PlanJob(request)->environment,
              Contains(testing::StartsWith("ANTHROPIC_API_KEY=sk-ant-api03-")));
  request.shape = CredentialShape::kOauthToken;
  cell::Job job = PlanJob(request).value();
  EXPECT_THAT(job.environment,
              Contains(testing::StartsWith("CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-")));
  EXPECT_THAT(job.environment, Not(Contains(testing::StartsWith("ANTHROPIC_API_KEY="))));
  EXPECT_THAT(PlanJob(Request(Runtime::kCodex))->environment,
              Contains(testing::StartsWith("OPENAI_API_KEY=sk-")));
}

TEST(PlanJobTest, DeniedToolsAreSortedOnceEachWithoutWhatCouldBeAnOption) {
  JobRequest request = Request(Runtime::kClaude);
  request.denied_tools = {"computer", "Bash(rm:*)", "", "--help", "a,b", "x\ny", "computer"};
  EXPECT_EQ(After(PlanJob(request)->argv, "--disallowedTools"), "Bash(rm:*),computer");
  request.denied_tools = {"", "-x"};
  EXPECT_THAT(PlanJob(request)->argv, Not(Contains("--disallowedTools")));
}

TEST(PlanJobTest, CodexReadsThePromptFromStandardInputAndHasNoServerSideTool) {
  cell::Job job = PlanJob(Request(Runtime::kCodex)).value();
  EXPECT_EQ(job.argv[1], "exec");
  EXPECT_EQ(job.argv.back(), "-");
  EXPECT_THAT(job.argv, Contains("web_search=\"disabled\""));
  EXPECT_THAT(job.argv, Contains("mcp_servers={}"));
  EXPECT_THAT(job.directories, Contains("/tmp/dudu-private/home/.codex"));
}

TEST(PlanJobTest, GrokReadsThePromptFromAFileAndIsToldWhatItMayNotHave) {
  cell::Job job = PlanJob(Request(Runtime::kGrok)).value();
  EXPECT_EQ(job.input, "");
  ASSERT_EQ(job.files.size(), 1U);
  EXPECT_EQ(job.files[0].content, "the secret prompt");
  EXPECT_EQ(After(job.argv, "--prompt-file"), "/tmp/dudu-private/home/" + job.files[0].path);
  EXPECT_EQ(After(job.argv, "--output-format"), "streaming-messages-json");
  EXPECT_EQ(After(job.argv, "--tools"),
            "run_terminal_command,read_file,search_replace,list_dir,grep,write");
  EXPECT_THAT(After(job.argv, "--disallowed-tools"), testing::HasSubstr("spawn_subagent"));
  EXPECT_EQ(After(job.argv, "--max-turns"), "7");
  EXPECT_THAT(job.environment, Contains("GROK_XAI_API_BASE_URL=http://127.0.0.1:4321/v1"));
  EXPECT_THAT(job.environment, Contains(testing::HasSubstr("XAI_API_KEY=sk-taskcell-placeholder")));
  EXPECT_THAT(job.argv, Not(Contains(testing::HasSubstr("secret"))));
}

TEST(PlanJobTest, TheLoopTakesModelAndTurns) {
  EXPECT_THAT(PlanJob(Request(Runtime::kOpenAiCompat))->argv,
              ElementsAre("/run/taskcell/loop", "model-1", "7"));
}

TEST(PlanJobTest, ModelsThatCouldBeOptionsOrConfigurationAreRefused) {
  for (const char* model : {"", "-p", "a b", "a\nb", "a\"b", "a\\b", "a\x7f"}) {
    JobRequest request = Request(Runtime::kCodex);
    request.model = model;
    Result<cell::Job> job = PlanJob(request);
    ASSERT_FALSE(job.ok()) << model;
    EXPECT_EQ(job.error().code, "invalid_config");
  }
  JobRequest request = Request(Runtime::kCodex);
  request.model = std::string(256, 'm');
  EXPECT_TRUE(PlanJob(request).ok());
  request.model += 'm';
  EXPECT_FALSE(PlanJob(request).ok());
}

TEST(PlanJobTest, AntigravityTakesItsPromptAsALineAndItsKeyFromTheEnvironment) {
  JobRequest request = Request(Runtime::kAntigravity);
  request.tunnel_port = 4322;
  request.secret = "AIza-the-key";
  cell::Job job = PlanJob(request).value();
  EXPECT_EQ(job.input, "{\"event\":\"user\",\"message\":{\"content\":\"the secret prompt\"}}\n");
  EXPECT_EQ(After(job.argv, "--input-format"), "stream-json");
  EXPECT_EQ(After(job.argv, "--model"), "model-1");
  EXPECT_THAT(job.environment, Contains("GEMINI_API_KEY=AIza-the-key"));
  EXPECT_THAT(job.argv, Not(Contains(testing::HasSubstr("AIza"))));
  ASSERT_EQ(job.files.size(), 2U);
  EXPECT_EQ(job.files[0].path, ".gemini/antigravity-cli/settings.json");
  EXPECT_EQ(job.files[0].content,
            "{\"modelProvider\":\"gemini\",\"trustedWorkspaces\":[\"/workspace\"]}\n");
  EXPECT_EQ(job.files[1].path, ".gemini/config/hooks.json");
  EXPECT_EQ(job.files[1].content,
            R"({"taskcell-tools":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command",)"
            R"("command":"/run/taskcell/loop --tool-guard","timeout":10}]}]}})"
            "\n");
}

TEST(PlanJobTest, WithTunnelsHttpsGoesThroughThemAndTheBrokerIsAskedDirectly) {
  for (Runtime runtime : {Runtime::kClaude, Runtime::kCodex, Runtime::kOpenAiCompat, Runtime::kGrok,
                          Runtime::kAntigravity}) {
    JobRequest request = Request(runtime);
    request.secret = "key";
    request.tunnel_port = 4322;
    cell::Job job = PlanJob(request).value();
    EXPECT_EQ(job.tunnel_port, 4322);
    for (const char* entry :
         {"HTTPS_PROXY=http://127.0.0.1:4322", "https_proxy=http://127.0.0.1:4322",
          "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"})
      EXPECT_THAT(job.environment, Contains(entry));
    EXPECT_THAT(job.environment, Not(Contains(testing::StartsWith("HTTP_PROXY="))));
    if (runtime != Runtime::kAntigravity) {
      EXPECT_THAT(job.environment, Not(Contains(testing::HasSubstr("=key"))));
    }
  }
  for (Runtime runtime : kRunnable) {
    cell::Job job = PlanJob(Request(runtime)).value();
    EXPECT_EQ(job.tunnel_port, 0);
    EXPECT_THAT(job.environment, Not(Contains(testing::HasSubstr("PROXY"))));
  }
}

TEST(PlanJobTest, WhatCannotBePlannedIsRefused) {
  JobRequest request = Request(Runtime::kClaude);
  request.executable = "claude";
  EXPECT_EQ(PlanJob(request).error().code, "invalid_config");
  request = Request(Runtime::kClaude);
  request.broker_port = 0;
  EXPECT_EQ(PlanJob(request).error().kind, Kind::kInternal);
  request = Request(Runtime::kClaude);
  request.max_turns = 0;
  EXPECT_EQ(PlanJob(request).error().kind, Kind::kInternal);
  request = Request(Runtime::kAntigravity);
  request.tunnel_port = 4322;
  EXPECT_EQ(PlanJob(request).error().kind, Kind::kInternal);
  request.secret = "key";
  EXPECT_TRUE(PlanJob(request).ok());
  request.tunnel_port = 0;
  EXPECT_EQ(PlanJob(request).error().kind, Kind::kInternal);
}

TEST(ModelsForTest, TheAgentsOwnModelIsAlwaysAmongThem) {
  for (Runtime runtime : kRunnable) EXPECT_THAT(ModelsFor(runtime, "m-1"), Contains("m-1"));
}

TEST(ModelsForTest, ClaudesShortNamesBecomeTheLongOnesEverywhere) {
  EXPECT_THAT(ModelsFor(Runtime::kClaude, "Sonnet"), ElementsAre("claude-sonnet-5"));
  EXPECT_THAT(ModelsFor(Runtime::kClaude, "claude-opus-4-1"), ElementsAre("claude-opus-4-1"));
  EXPECT_THAT(ModelsFor(Runtime::kCodex, "sonnet"), ElementsAre("sonnet"));
  JobRequest request = Request(Runtime::kClaude);
  request.model = "sonnet[1m]";
  cell::Job job = PlanJob(request).value();
  EXPECT_EQ(After(job.argv, "--model"), "claude-sonnet-5[1m]");
  EXPECT_THAT(job.environment, Contains("ANTHROPIC_DEFAULT_SONNET_MODEL=claude-sonnet-5[1m]"));
  EXPECT_THAT(ModelsFor(Runtime::kClaude, "sonnet[1m]"), ElementsAre("claude-sonnet-5"));
}

}  // namespace
}  // namespace taskcell::gateway
