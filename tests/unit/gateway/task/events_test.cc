// The audit events as they stand in the file, and the one line of each failure in the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/ledger/audit.h"
#include "gateway/ledger/gateway_log.h"
#include "launcher/sys/socket.h"
#include "tests/unit/gateway/task/host_fixture.h"

namespace taskcell::gateway {
namespace {

using testing::HasSubstr;

constexpr std::string_view kTime = "2026-10-02T08:15:30.123456+00:00";

class EventsTest : public HostTaskTest {
 protected:
  // The audit log with every time replaced by the same.
  std::string Lines() const {
    std::string log = AuditLog();
    constexpr std::string_view kKey = "{\"timestamp\":\"";
    for (std::size_t at = log.find(kKey); at != std::string::npos; at = log.find(kKey, at + 1))
      log.replace(at + kKey.size(), kTime.size(), kTime);
    return log;
  }
};

TEST_F(EventsTest, RefusalsAndBypassesStandAsTheGuideSays) {
  Agent("a1", "[runtime]\nprovider = \"OpenAI-compat\"\n", "false");
  EXPECT_EQ(Run().code, "network_disabled");
  EXPECT_EQ(Lines(),
            "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\",\"event_type\":"
            "\"task_sandbox_unavailable\",\"agent_id\":\"a1\",\"severity\":\"warning\",\"details\":"
            "{\"reason\":\"network_disabled\",\"runtime\":\"openai_compat\","
            "\"when_unavailable\":\"fail\"}}\n");
  std::filesystem::remove(path_ + "/security_audit.jsonl");
  Put("config.toml", "[container.sandbox]\nwhen_unavailable = \"run_unsandboxed\"\n");
  Agent("a1", "", "false");
  EXPECT_EQ(Run().code, "ok");
  EXPECT_EQ(Lines(),
            "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\",\"event_type\":"
            "\"task_sandbox_unavailable\",\"agent_id\":\"a1\",\"severity\":\"warning\",\"details\":"
            "{\"reason\":\"network_disabled\",\"runtime\":\"claude\","
            "\"when_unavailable\":\"run_unsandboxed\"}}\n"
            "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\",\"event_type\":"
            "\"task_sandbox_bypassed\",\"agent_id\":\"a1\",\"severity\":\"warning\",\"details\":"
            "{\"reason\":\"network_disabled\",\"runtime\":\"claude\"}}\n");
}

TEST_F(EventsTest, PathsThatAreNotCoveredStandAsTheGuideSays) {
  TaskRequest request{path_, "a1", "do it"};
  request.kind = TaskKind::kMail;
  EXPECT_EQ(RunTask(request, surroundings_).code, "skipped");
  EXPECT_EQ(Lines(),
            "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\",\"event_type\":"
            "\"task_sandbox_not_applied\",\"agent_id\":\"a1\",\"severity\":\"warning\",\"details\":"
            "{\"action\":\"skipped\",\"path\":\"mail\"}}\n");
}

TEST(AuditEventsTest, ViolationsAndCleanupsStandAsTheGuideSays) {
  const WallClock::time_point time{std::chrono::microseconds{1790928930123456}};
  EXPECT_EQ(
      AuditLine({"task_sandbox_tool_violation",
                 "a1",
                 "warning",
                 {{"runtime", "openai-compat"}, {"tool", "WebFetch"}}},
                time),
      "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\",\"event_type\":"
      "\"task_sandbox_tool_violation\",\"agent_id\":\"a1\",\"severity\":\"warning\",\"details\":"
      "{\"runtime\":\"openai-compat\",\"tool\":\"WebFetch\"}}");
  EXPECT_EQ(AuditLine({"task_sandbox_cleanup_failed",
                       "system",
                       "warning",
                       {{"reason", "list_invalid"}, {"count", uint64_t{1}}}},
                      time),
            "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\",\"event_type\":"
            "\"task_sandbox_cleanup_failed\",\"agent_id\":\"system\",\"severity\":\"warning\","
            "\"details\":{\"count\":1,\"reason\":\"list_invalid\"}}");
}

TEST(AuditEventsTest, ExportsHaveTheseLines) {
  const WallClock::time_point time{std::chrono::microseconds{1790928930123456}};
  EXPECT_EQ(AuditLine({"task_sandbox_exported",
                       "a1",
                       "warning",
                       {{"run_id", "0123"}, {"files", uint64_t{2}}, {"bytes", uint64_t{70}}}},
                      time),
            "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\",\"event_type\":"
            "\"task_sandbox_exported\",\"agent_id\":\"a1\",\"severity\":\"warning\",\"details\":"
            "{\"bytes\":70,\"files\":2,\"run_id\":\"0123\"}}");
  EXPECT_EQ(
      AuditLine({"task_sandbox_export_failed", "a1", "warning", {{"run_id", "0123"}}}, time),
      "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\",\"event_type\":"
      "\"task_sandbox_export_failed\",\"agent_id\":\"a1\",\"severity\":\"warning\",\"details\":"
      "{\"run_id\":\"0123\"}}");
}

TEST(GatewayLogTest, AnEventIsOneLineWhateverItQuotes) {
  const WallClock::time_point time{std::chrono::microseconds{1790928930123456}};
  EXPECT_EQ(LogName(time), "gateway.log.2026-10-02");
  EXPECT_EQ(
      LogLine({"task_failed", "a1", {{"code", "no_reply"}, {"detail", "x\ny \"z\""}, {"e", ""}}},
              time),
      "2026-10-02T08:15:30.123456+00:00 WARN task_failed agent=a1 code=no_reply "
      "detail=\"x\\u000ay \\\"z\\\"\" e=\"\"");
}

// Of every kind of failure, by whatever it comes: one line, with its agent and code.
TEST_F(EventsTest, EachFailureHasExactlyOneLineInTheLog) {
  const std::vector<std::string> from_the_sandbox = {"docker_unreachable",
                                                     "image_missing",
                                                     "resource_limits_unenforced",
                                                     "engine_unsupported",
                                                     "invalid_config",
                                                     "unsupported_runtime",
                                                     "network_disabled",
                                                     "root_user",
                                                     "unsupported_platform",
                                                     "no_account",
                                                     "container_refused",
                                                     "workspace_failed",
                                                     "cell_mismatch",
                                                     "container_create_failed",
                                                     "agent_dir_unmountable",
                                                     "transport_failed",
                                                     "cleanup_failed",
                                                     "tool_violation",
                                                     "rate_limited",
                                                     "budget_spent",
                                                     "invalid_input",
                                                     "output_overflow",
                                                     "supervisor_refused",
                                                     "auth_failed",
                                                     "step_limit",
                                                     "timeout",
                                                     "stopped",
                                                     "no_reply",
                                                     "out_of_memory",
                                                     "pids_limit",
                                                     "provider_unavailable",
                                                     "result_incomplete",
                                                     "internal_error"};
  for (const std::string& code : from_the_sandbox) {
    std::filesystem::remove_all(path_ + "/logs");
    state_.fail_at = "make";
    state_.code = code;
    EXPECT_EQ(Run().code, code);
    const std::string log = Log();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << code << log;
    EXPECT_THAT(log, HasSubstr(Text(" WARN task_failed agent=a1 code=", code,
                                    " unavailable=", IsUnavailable(code) ? "true" : "false")));
  }
  state_.fail_at = "";
  const std::vector<std::pair<std::string, std::string>> from_the_program = {
      {"no_reply", "exit 3"},
      {"step_limit", R"(echo '{"type":"result","subtype":"error_max_turns"}'; exit 1)"},
      {"output_overflow", "head -c 3000000 /dev/zero"},
      {"auth_failed", R"(echo '{"type":"result","subtype":"success","is_error":true,)"
                      R"("api_error_status":401,"result":"x"}')"},
      {"rate_limited", R"(echo '{"type":"result","subtype":"success","is_error":true,)"
                       R"("api_error_status":429,"result":"x"}')"}};
  AgentOff();
  for (const auto& [code, body] : from_the_program) {
    std::filesystem::remove_all(path_ + "/logs");
    std::filesystem::remove(path_ + "/taskcell.db");
    PutProgram("claude", body);
    EXPECT_EQ(Run().code, code);
    const std::string log = Log();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << code << log;
    EXPECT_THAT(log, HasSubstr(Text(" code=", code, " unavailable=false")));
    EXPECT_EQ(log.find("sk-ant-api03-test"), std::string::npos);
  }
  std::filesystem::remove_all(path_ + "/logs");
  std::filesystem::remove(path_ + "/taskcell.db");
  PutProgram("claude", R"(echo '{"type":"result","subtype":"success","result":"fine"}')");
  EXPECT_EQ(Run().code, "ok");
  EXPECT_EQ(Log(), "") << "control: a success has none";
}

TEST_F(EventsTest, EachRequestThatIsTurnedAwayHasExactlyOneLineInTheLog) {
  TaskRequest empty{path_, "a1", " "};
  TaskRequest nobody{path_, "no\nbody", "x"};
  TaskRequest on_host{path_, "a1", "x", TaskKind::kCron};
  on_host.require_cell = true;
  TaskRequest team{path_, "a1", "x", TaskKind::kGoalRound, "planner"};
  const std::vector<std::pair<std::string, TaskRequest>> requests = {
      {"agent=a1 code=invalid_prompt", empty},
      {"agent=\"no\\u000abody\" code=agent_not_found", nobody},
      {"agent=a1 code=cell_required", on_host},
      {"agent=a1 code=team_round_refused", team}};
  for (const auto& [line, request] : requests) {
    std::filesystem::remove_all(path_ + "/logs");
    EXPECT_FALSE(RunTask(request, surroundings_).ok());
    const std::string log = Log();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << line << log;
    EXPECT_THAT(log, HasSubstr(line));
  }
  std::filesystem::remove_all(path_ + "/logs");
  Put("agents/a1/agent.toml", "[agent\n");
  EXPECT_EQ(Run().code, "invalid_config");
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(EventsTest, WhatAProgramQuotesOfItsCredentialIsRedactedInTheLog) {
  AgentOff();
  PutProgram("claude",
             R"(echo "{\"type\":\"error\",\"message\":\"bad $ANTHROPIC_API_KEY\"}"; exit 1)");
  EXPECT_EQ(Run().code, "no_reply");
  EXPECT_THAT(Log(), HasSubstr("bad <redacted>"));
}

// A cut through a secret would leave a half that no search finds.
TEST_F(EventsTest, TheCredentialIsRedactedBeforeAnythingIsCut) {
  AgentOff();
  // The end of the detail falls into the key.
  PutProgram("claude", R"(x=$(printf '%.*d' 590 0)
    echo "{\"type\":\"error\",\"message\":\"$x$ANTHROPIC_API_KEY\"}"; exit 1)");
  EXPECT_EQ(Run().code, "no_reply");
  EXPECT_EQ(Log().find("sk-ant"), std::string::npos) << Log();
  EXPECT_THAT(Log(), HasSubstr("0000000"));
  // So does the beginning of what is kept of the standard error.
  std::filesystem::remove_all(path_ + "/logs");
  PutProgram("claude", R"(printf '%s%.*d' "$ANTHROPIC_API_KEY" 1990 0 >&2; exit 1)");
  EXPECT_EQ(Run().code, "no_reply");
  EXPECT_EQ(Log().find("api03-test"), std::string::npos) << Log();
  EXPECT_THAT(Log(), HasSubstr("0000000")) << "control: the standard error is in the log";
  std::filesystem::remove_all(path_ + "/logs");
  PutProgram("claude", "echo key AIzaSyA-0123456789_0123456789abcdef is wrong >&2; exit 1");
  EXPECT_EQ(Run().code, "no_reply");
  EXPECT_THAT(Log(), HasSubstr("key <redacted> is wrong"));
}

}  // namespace
}  // namespace taskcell::gateway
