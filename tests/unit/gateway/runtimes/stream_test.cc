#include "gateway/runtimes/stream.h"

#include <gtest/gtest.h>

#include <string>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr uint64_t kTurns = 30;
constexpr std::string_view kInit =
    R"({"type":"system","subtype":"init","session_id":"s1","tools":["Bash"],"model":"m"})"
    "\n";
constexpr std::string_view kSuccess =
    R"({"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"All done"})";

std::string Assistant(std::string_view blocks) {
  return Text(R"({"type":"assistant","message":{"id":"m1","role":"assistant","content":[)", blocks,
              "]}}\n");
}
std::string TextBlock(std::string_view text) {
  return Text(R"({"type":"text","text":")", text, "\"}");
}
std::string ToolBlock(std::string_view tool) {
  return Text(R"({"type":"tool_use","id":"t1","name":")", tool, R"(","input":{}})");
}

ParsedRun Claude(std::string_view out, int cli_exit = 0, std::string_view err = "") {
  return ParseRun(Runtime::kClaude, kTurns, out, err, cli_exit);
}
ParsedRun Codex(std::string_view out, int cli_exit = 0) {
  return ParseRun(Runtime::kCodex, kTurns, out, "", cli_exit);
}

TEST(StreamTest, TheReplyIsTheFinalEventsText) {
  ParsedRun run = Claude(Text(kInit, Assistant(TextBlock("on my way")), kSuccess, "\n"));
  EXPECT_EQ(run.outcome, StreamOutcome::kSuccess);
  EXPECT_EQ(run.reply, "All done");
  EXPECT_FALSE(run.step_limit);
  EXPECT_FALSE(run.used_tool);
}

TEST(StreamTest, AnEmptyResultFallsBackToTheLastText) {
  ParsedRun run = Claude(Text(kInit, Assistant(TextBlock("the answer")),
                              R"({"type":"result","subtype":"success","result":" "})"));
  EXPECT_EQ(run.reply, "the answer");
}

TEST(StreamTest, AnErrorCalledSuccessIsNoReply) {
  std::string forbidden = Text(
      kInit,
      R"({"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"Access is switched off."}]},"error":"oauth_org_not_allowed"})",
      "\n",
      R"({"type":"result","subtype":"success","is_error":true,"api_error_status":403,"result":"Access is switched off."})");
  std::string rejected = Text(
      kInit,
      R"({"type":"assistant","message":{"content":[{"type":"text","text":"Invalid API key"}]},"error":"authentication_failed"})",
      "\n", R"({"type":"result","subtype":"success","is_error":false,"result":"Invalid API key"})");
  std::string quota = Text(
      kInit,
      R"({"type":"result","subtype":"error","is_error":true,"result":"","error":"Maximum usage limit reached"})");
  std::string plain =
      Text(kInit, R"({"type":"result","subtype":"error_during_execution","is_error":true})");
  for (int cli_exit : {0, 1}) {
    EXPECT_EQ(Claude(forbidden, cli_exit).outcome, StreamOutcome::kAuthFailed);
    EXPECT_EQ(Claude(rejected, cli_exit).outcome, StreamOutcome::kAuthFailed);
    EXPECT_EQ(Claude(rejected, cli_exit).reply, std::nullopt);
    EXPECT_EQ(Claude(quota, cli_exit).outcome, StreamOutcome::kRateLimited);
    EXPECT_EQ(Claude(plain, cli_exit).outcome, StreamOutcome::kFailed);
  }
  EXPECT_NE(Claude(rejected).detail.find("Invalid API key"), std::string::npos);
}

TEST(StreamTest, AnErrorThatTheProgramGotOverDoesNotCount) {
  ParsedRun run = Claude(Text(
      kInit,
      R"({"type":"assistant","message":{"content":[{"type":"text","text":"wait"}]},"error":"rate_limit"})",
      "\n", Assistant(TextBlock("fine")), kSuccess));
  EXPECT_EQ(run.outcome, StreamOutcome::kSuccess);
}

TEST(StreamTest, AReplyThatSpeaksOfLimitsAndKeysIsAReply) {
  ParsedRun run = Claude(Text(
      kInit,
      R"({"type":"result","subtype":"success","result":"HTTP 429 means rate limit; 401 unauthorized"})"));
  EXPECT_EQ(run.outcome, StreamOutcome::kSuccess);
}

TEST(StreamTest, AWarningAboutTheRateLimitIsNoFailureButARejectionExplainsOne) {
  auto event = [](std::string_view status) {
    return Text(R"({"type":"rate_limit_event","rate_limit_info":{"status":")", status, "\"}}\n");
  };
  EXPECT_EQ(Claude(Text(kInit, event("allowed_warning"), kSuccess)).outcome,
            StreamOutcome::kSuccess);
  EXPECT_EQ(Claude(Text(kInit, event("allowed_warning")), 1).outcome, StreamOutcome::kFailed);
  EXPECT_EQ(Claude(Text(kInit, event("rejected")), 1).outcome, StreamOutcome::kRateLimited);
  EXPECT_EQ(Claude(Text(kInit, event("rejected"), kSuccess)).outcome, StreamOutcome::kSuccess);
}

TEST(StreamTest, StderrExplainsOnlyARunThatFailed) {
  EXPECT_EQ(Claude(kInit, 1, "Invalid API key · Please run /login").outcome,
            StreamOutcome::kAuthFailed);
  EXPECT_EQ(Claude(kInit, 1, "429 Too Many Requests").outcome, StreamOutcome::kRateLimited);
  EXPECT_EQ(Claude(kInit, 1, "port 14290 is taken").outcome, StreamOutcome::kFailed);
  EXPECT_EQ(Claude(Text(kInit, kSuccess), 0, "rate limit").outcome, StreamOutcome::kSuccess);
  // Once a tool ran, its output may be what the words came from.
  EXPECT_EQ(Claude(Text(kInit, Assistant(ToolBlock("Bash"))), 1, "unauthorized").outcome,
            StreamOutcome::kFailed);
}

TEST(StreamTest, AtTheStepLimitTheLastTextIsTheReply) {
  std::string with_text = Text(
      kInit, Assistant(TextBlock("Half of the report is written.")),
      R"({"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":31,"errors":["Reached maximum number of turns: 30"]})");
  ParsedRun run = Claude(with_text, 1);
  EXPECT_TRUE(run.step_limit);
  EXPECT_EQ(run.outcome, StreamOutcome::kSuccess);
  EXPECT_EQ(run.reply, "Half of the report is written.");

  run = Claude(Text(kInit, Assistant(ToolBlock("Bash")),
                    R"({"type":"result","subtype":"error_max_turns","num_turns":30,"errors":[]})"),
               1);
  EXPECT_EQ(run.outcome, StreamOutcome::kStepLimit);
  EXPECT_EQ(run.reply, std::nullopt);

  run =
      Claude(Text(kInit, Assistant(TextBlock("First part.")),
                  Assistant(Text(TextBlock("Second part."), ",", ToolBlock("Read"))),
                  R"({"type":"result","subtype":"error_max_turns","terminal_reason":"max_turns"})"),
             1);
  EXPECT_EQ(run.reply, "Second part.");

  run = Claude(Text(kInit, Assistant(TextBlock("Working on it."))), 1);
  EXPECT_EQ(run.outcome, StreamOutcome::kFailed);
  EXPECT_FALSE(run.step_limit);
}

TEST(StreamTest, AStreamThatStopsHasNoReply) {
  std::string start = Text(kInit, Assistant(TextBlock("I will look at the file.")));
  std::string cut =
      Text(start, R"({"type":"result","subtype":"success","is_error":false,"result":"All do)");
  for (const std::string& out : {start, cut, std::string(), Text("\n\n  \n", start, "Killed\n")}) {
    ParsedRun run = Claude(out, 137);
    EXPECT_EQ(run.outcome, StreamOutcome::kFailed) << out;
    EXPECT_EQ(run.reply, std::nullopt);
    EXPECT_EQ(Claude(out, 0).outcome, StreamOutcome::kFailed) << out;
  }
  EXPECT_EQ(Claude(Text(start, kSuccess)).reply, "All done");  // whole, without a newline
}

TEST(StreamTest, ARunThatExitsWithAnErrorHasNoReply) {
  EXPECT_EQ(Claude(Text(kInit, kSuccess), 1).outcome, StreamOutcome::kFailed);
  EXPECT_EQ(Claude(Text(kInit, kSuccess), 1).reply, std::nullopt);
}

TEST(StreamTest, EverySplitOfTheBytesGivesTheSameReply) {
  std::string out = Text(kInit, R"({"type":"result","subtype":"success","result":")",
                         "\u97d3\u570b \U0001F600 caf\u00e9", "\"}\n");
  for (std::size_t size = 1; size <= 7; ++size) {
    StreamReader reader(Runtime::kClaude, kTurns);
    for (std::size_t at = 0; at < out.size(); at += size) {
      ASSERT_TRUE(reader.TakeStdout(std::string_view(out).substr(at, size)));
    }
    EXPECT_EQ(reader.Finish(0).reply, "\u97d3\u570b \U0001F600 caf\u00e9");
  }
}

TEST(StreamTest, OddBytesGiveACleanReply) {
  auto with = [](std::string_view text) {
    return Text(kInit, R"({"type":"result","subtype":"success","is_error":false,"result":")", text,
                "\"}\n");
  };
  EXPECT_EQ(Claude(with(R"(half \ud83d emoji)")).reply, "half \uFFFD emoji");
  EXPECT_EQ(Claude(with(R"(nul \u0000 end)")).reply, "nul  end");
  EXPECT_EQ(Claude(with(R"(\u001b[31mred\u001b[0m \u001b]0;title\u0007 ok)")).reply, "red  ok");
  EXPECT_EQ(Claude(with(R"(a\u009b31mb\r\n\tc\u007f)")).reply, "a31mb\n\tc");
  EXPECT_EQ(Claude(with(R"(\u001b]0;never ended)")).reply, "]0;never ended");
  EXPECT_EQ(Claude(with("bad \xff\xfe")).reply, "bad \uFFFD\uFFFD");
  EXPECT_EQ(Claude(Text("\xef\xbb\xbf", with("mark"))).reply, "mark");
  EXPECT_EQ(Claude(Text("\x1b[2K\x1b[1G", with("after ansi"))).reply, "after ansi");
  std::string crlf = with("crlf");
  for (std::size_t at = 0; (at = crlf.find('\n', at)) != std::string::npos; at += 2) {
    crlf.insert(at, 1, '\r');
  }
  EXPECT_EQ(Claude(crlf).reply, "crlf");
}

TEST(StreamTest, AnEventWrittenIntoTheMiddleOfALineCostsNeither) {
  std::string line = Text(R"({"type":"result","subtype":"success","result":"left )", R"(right"})");
  std::string event = R"({"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}})";
  for (std::size_t cut = 1; cut < line.size(); ++cut) {
    std::string out = Text(kInit, line.substr(0, cut), event, "\n", line.substr(cut), "\n");
    ParsedRun run = Claude(out);
    EXPECT_EQ(run.reply, "left right") << out;
    EXPECT_EQ(run.unparsable_lines, 0U) << out;
    out = Text(kInit, line.substr(0, cut), "\n", event, "\n", line.substr(cut), "\n");
    EXPECT_EQ(Claude(out).reply, "left right") << out;
  }
  EXPECT_EQ(Claude(Text(kInit, event, line)).reply, "left right");  // two objects on one line
}

TEST(StreamTest, MoreThanThreeLinesOfNoJsonAreAViolation) {
  std::string three = Text(kInit, "one\n", "two\n", "{ three\n");
  EXPECT_EQ(Claude(Text(three, kSuccess)).reply, "All done");
  ParsedRun run = Claude(Text(three, "[4]\n", kSuccess));
  EXPECT_EQ(run.outcome, StreamOutcome::kToolViolation);
  EXPECT_EQ(run.violation, "unparsable_stream");
  // Cut objects count as well, though only when it is clear that nothing completes them.
  run = Claude(Text(kInit, "{\"a\":\n{\"b\":\n{\"c\":\n{\"d\":\n", kSuccess));
  EXPECT_EQ(run.violation, "unparsable_stream");
}

TEST(StreamTest, AToolOutsideTheSurfaceEndsTheRun) {
  for (const char* tool : {"Read", "Write", "Edit", "Glob", "Grep", "Bash"}) {
    ParsedRun run = Claude(Text(kInit, Assistant(ToolBlock(tool)), kSuccess));
    EXPECT_EQ(run.outcome, StreamOutcome::kSuccess) << tool;
    EXPECT_TRUE(run.used_tool);
  }
  for (const char* tool : {"WebFetch", "read", "Bash ", "Task", "mcp__x__y"}) {
    StreamReader reader(Runtime::kClaude, kTurns);
    EXPECT_FALSE(reader.TakeStdout(Text(kInit, Assistant(ToolBlock(tool))))) << tool;
    EXPECT_EQ(reader.Finish(137).outcome, StreamOutcome::kToolViolation);
  }
  ParsedRun run =
      Claude(Text(kInit, Assistant(R"({"type":"server_tool_use","name":"web_search"})")));
  EXPECT_EQ(run.violation, "server_tool_use");
  run = Claude(Text(kInit, Assistant(ToolBlock("")), kSuccess));
  EXPECT_EQ(run.violation, "unnamed tool");
  run = Claude(Text(kInit, Assistant(ToolBlock("We\\u001b[31mb Fetch;\\\"x"))));
  EXPECT_EQ(run.violation, "We31mbFetchx");
}

TEST(StreamTest, AViolationWinsOverWhateverElseHappened) {
  ParsedRun run = Claude(
      Text(kInit, Assistant(ToolBlock("WebFetch")),
           R"({"type":"result","subtype":"success","is_error":true,"api_error_status":429})"),
      1);
  EXPECT_EQ(run.outcome, StreamOutcome::kToolViolation);
}

TEST(StreamTest, TheTranscriptIsBoundedAtTheLimitAndOnePast) {
  std::string out = Text(kInit, kSuccess, "\n");
  std::string filler = Text(R"({"type":"system","x":")",
                            std::string(kMaxTranscriptBytes - out.size() - 25, 'x'), "\"}\n");
  ASSERT_EQ(filler.size() + out.size(), kMaxTranscriptBytes);
  EXPECT_EQ(Claude(filler + out).reply, "All done");
  ParsedRun run = Claude(filler + " " + out);
  EXPECT_EQ(run.outcome, StreamOutcome::kOutputOverflow);
  EXPECT_EQ(run.reply, std::nullopt);
  StreamReader reader(Runtime::kClaude, kTurns);
  EXPECT_TRUE(reader.TakeStdout(filler + out));
  EXPECT_FALSE(reader.TakeStdout(" "));
}

TEST(StreamTest, UsageIsReported) {
  ParsedRun run = Claude(Text(
      kInit,
      R"({"type":"result","subtype":"success","result":"x","usage":{"input_tokens":10,"output_tokens":3,"cache_read_input_tokens":7}})"));
  EXPECT_TRUE(run.usage.seen);
  EXPECT_EQ(run.usage.input, 10U);
  EXPECT_EQ(run.usage.output, 3U);
  EXPECT_EQ(run.usage.cached_input, 7U);
  EXPECT_FALSE(Claude(Text(kInit, kSuccess)).usage.seen);
}

constexpr std::string_view kCodexStart =
    "{\"type\":\"thread.started\",\"thread_id\":\"x\"}\n{\"type\":\"turn.started\"}\n";
constexpr std::string_view kCodexEnd =
    "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}\n";

std::string CodexItem(std::string_view id, std::string_view type, std::string_view text = "") {
  return Text(R"({"type":"item.completed","item":{"id":")", id, R"(","type":")", type,
              R"(","text":")", text, "\"}}\n");
}

TEST(StreamTest, CodexErrorsOnTheWayAreProgress) {
  ParsedRun run =
      Codex(Text(kCodexStart, R"({"type":"error","message":"Reconnecting... 1/5: 429"})", "\n",
                 CodexItem("i0", "reasoning", "thinking"), CodexItem("i1", "agent_message", "pong"),
                 kCodexEnd));
  EXPECT_EQ(run.outcome, StreamOutcome::kSuccess);
  EXPECT_EQ(run.reply, "pong");
  EXPECT_EQ(run.usage.input, 5U);
}

TEST(StreamTest, CodexFailuresWithExitStatusZeroAreFailures) {
  EXPECT_EQ(Codex(Text(kCodexStart, R"({"type":"error","message":"usage limit reached"})", "\n",
                       R"({"type":"turn.failed","error":{"message":"usage limit reached"}})"))
                .outcome,
            StreamOutcome::kRateLimited);
  ParsedRun run = Codex(
      Text(kCodexStart, CodexItem("i1", "agent_message", "partial"),
           R"({"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}})"));
  EXPECT_EQ(run.outcome, StreamOutcome::kAuthFailed);
  EXPECT_EQ(run.reply, std::nullopt);
  EXPECT_EQ(Codex(Text(kCodexStart, kCodexEnd)).outcome, StreamOutcome::kFailed);
  EXPECT_EQ(Codex(Text(kCodexStart, R"({"type":"error","message":"quota exceeded"})"), 1).outcome,
            StreamOutcome::kRateLimited);
}

TEST(StreamTest, CodexItemsThatAreNoFileOrShellToolAreViolations) {
  ParsedRun run =
      Codex(Text(kCodexStart, CodexItem("a", "command_execution"), CodexItem("b", "file_change"),
                 CodexItem("c", "todo_list"), CodexItem("d", "agent_message", "ok"), kCodexEnd));
  EXPECT_EQ(run.reply, "ok");
  EXPECT_EQ(run.steps, 2U);
  EXPECT_EQ(Codex(Text(kCodexStart, CodexItem("a", "web_search"))).violation, "web_search");
  EXPECT_EQ(Codex(Text(kCodexStart, CodexItem("a", "mcp_tool_call"))).violation, "mcp_tool_call");
  EXPECT_EQ(Codex(Text(kCodexStart, R"({"type":"item.started"})")).violation, "unnamed tool");
}

TEST(StreamTest, CodexStepsAreCountedAndStoppedOnePastTheLimit) {
  auto steps = [](int count) {
    std::string out = Text(kCodexStart, CodexItem("m", "agent_message", "so far"));
    for (int i = 0; i < count; ++i) {
      std::string id = Text("i", i);
      out +=
          Text(R"({"type":"item.started","item":{"type":"command_execution","id":")", id, "\"}}\n");
      out += CodexItem(id, "command_execution");  // the same item: one step
    }
    return out;
  };
  StreamReader at_limit(Runtime::kCodex, 3);
  EXPECT_TRUE(at_limit.TakeStdout(steps(3)));
  StreamReader past(Runtime::kCodex, 3);
  EXPECT_FALSE(past.TakeStdout(steps(4)));
  ParsedRun run = past.Finish(137);
  EXPECT_TRUE(run.step_limit);
  EXPECT_EQ(run.reply, "so far");
  StreamReader silent(Runtime::kCodex, 1);
  EXPECT_FALSE(silent.TakeStdout(
      Text(kCodexStart, CodexItem("", "file_change"), CodexItem("", "file_change"))));
  EXPECT_EQ(silent.Finish(137).outcome, StreamOutcome::kStepLimit);
}

TEST(StreamTest, AProgramThatAsksOnWithARejectedCredentialIsEnded) {
  const std::string retry =
      R"({"type":"system","subtype":"api_retry","error_status":401,"error":"authentication_failed"})"
      "\n";
  const std::string overloaded =
      R"({"type":"system","subtype":"api_retry","error_status":529,"error":"overloaded"})"
      "\n";
  StreamReader at_limit(Runtime::kClaude, kTurns);
  EXPECT_TRUE(at_limit.TakeStdout(Text(retry, retry, retry)));
  EXPECT_EQ(at_limit.Finish(1).outcome, StreamOutcome::kAuthFailed);
  StreamReader past(Runtime::kClaude, kTurns);
  EXPECT_FALSE(past.TakeStdout(Text(retry, retry, retry, retry)));
  EXPECT_EQ(past.Finish(137).outcome, StreamOutcome::kAuthFailed);
  StreamReader other(Runtime::kClaude, kTurns);
  EXPECT_TRUE(other.TakeStdout(Text(retry, retry, overloaded, retry, retry, overloaded, overloaded,
                                    overloaded, overloaded)));
  EXPECT_EQ(other.Finish(1).outcome, StreamOutcome::kFailed);
}

TEST(StreamTest, GrokWritesClaudesEventsWithToolsOfItsOwn) {
  auto grok = [](std::string_view out) { return ParseRun(Runtime::kGrok, kTurns, out, "", 0); };
  auto tool = [](std::string_view name) {
    return Text(R"({"type":"assistant","message":{"content":[{"type":"tool_use","name":")", name,
                "\"}]}}\n");
  };
  const std::string end = R"({"type":"result","subtype":"success","result":"done"})";
  EXPECT_EQ(grok(Text(tool("run_terminal_command"), tool("read_file"), end)).reply, "done");
  EXPECT_EQ(grok(Text(tool("Bash"), end)).violation, "Bash");
  EXPECT_EQ(grok(Text(tool("web_search"), end)).violation, "web_search");
  EXPECT_EQ(
      grok(Text(R"({"type":"system","subtype":"init","mcp_servers":[{"name":"x"}]})", "\n", end))
          .violation,
      "mcp_servers");
  EXPECT_EQ(grok(Text(R"({"type":"system","subtype":"init","mcp_servers":[]})", "\n", end)).reply,
            "done");
  // A quiet cancel: a success with status 0, and no text.
  EXPECT_EQ(grok(R"({"type":"result","subtype":"success","stop_reason":"cancelled","result":"x"})")
                .outcome,
            StreamOutcome::kFailed);
  EXPECT_TRUE(grok(R"({"type":"result","subtype":"error_max_turns"})").step_limit);
}

TEST(StreamTest, OnTheHostAnyToolMayBeUsedButNoiseStillEndsTheRun) {
  StreamReader reader(Runtime::kCodex, kTurns, StreamReader::Tools::kAny);
  EXPECT_TRUE(reader.TakeStdout(Text(kCodexStart, CodexItem("a", "mcp_tool_call"),
                                     CodexItem("b", "agent_message", "ok"), kCodexEnd)));
  EXPECT_EQ(reader.Finish(0).reply, "ok");
  StreamReader noisy(Runtime::kClaude, kTurns, StreamReader::Tools::kAny);
  EXPECT_FALSE(noisy.TakeStdout("a\nb\nc\nd\ne\n"));
  EXPECT_EQ(noisy.Finish(0).violation, "unparsable_stream");
}

TEST(StreamTest, OneObjectPrintedOverManyLinesIsReadBehindChatter) {
  ParsedRun run = ParseRun(Runtime::kAntigravity, kTurns,
                           "Loaded cached credentials.\nFile /tmp/rg.zip has been cached\n{\n  "
                           "\"response\": \"Mission completed.\",\n  \"stats\": {\n    \"tools\": "
                           "{ \"totalCalls\": 6 }\n  }\n}\n",
                           "", 0);
  EXPECT_EQ(run.reply, "Mission completed.");
  EXPECT_EQ(run.unparsable_lines, 2U);
  run =
      ParseRun(Runtime::kAntigravity, kTurns,
               "Loaded cached credentials.\n{ not json\n{\n  \"error\": { \"type\": \"ApiError\", "
               "\"message\": \"quota exceeded\", \"code\": 429 }\n}\n",
               "", 1);
  EXPECT_EQ(run.outcome, StreamOutcome::kRateLimited);
  run = ParseRun(Runtime::kAntigravity, kTurns,
                 "{\"event\":\"result\",\"result\":{\"status\":\"SUCCESS\",\"response\":\"two\n\n"
                 "  lines\"}}\n",
                 "", 0);
  EXPECT_EQ(run.reply, "two\n\n  lines");
}

TEST(StreamTest, AForbiddenAntigravityToolIsForgivenOnlyWhenTheHookRefusedIt) {
  auto step = [](std::string_view state, std::string_view error) {
    return Text(
        R"({"event":"step_update","step_update":{"step_index":4,"step_type":"tool","state":")",
        state, R"(","tool_info":{"name":"browser","error":{"message":")", error, "\"}}}}\n");
  };
  constexpr std::string_view kEnd =
      R"({"event":"result","result":{"status":"SUCCESS","response":"ok"}})";
  auto run = [](const std::string& out) {
    return ParseRun(Runtime::kAntigravity, kTurns, out, "", 0);
  };
  EXPECT_EQ(
      run(Text(step("ACTIVE", ""), step("ERROR", "tool call denied by pre-tool hook: no"), kEnd))
          .reply,
      "ok");
  EXPECT_EQ(run(Text(step("ACTIVE", ""), step("ERROR", "it broke"), kEnd)).violation, "browser");
  EXPECT_EQ(run(Text(step("ACTIVE", ""), step("DONE", ""), kEnd)).violation, "browser");
  EXPECT_EQ(run(Text(step("ACTIVE", ""), kEnd)).violation, "browser");
  EXPECT_EQ(run(step("ACTIVE", "")).violation, "browser");
}

TEST(StreamTest, ManyLinesOfOneOpenValueAreReadInLinearTime) {
  std::string out = "{\n";
  while (out.size() < kMaxTranscriptBytes - 64) out += "\n\"a\":1,\n{\"";
  ParsedRun run = Claude(out);  // the test's time limit is the assertion
  EXPECT_NE(run.outcome, StreamOutcome::kSuccess);
}

}  // namespace
}  // namespace taskcell::gateway
