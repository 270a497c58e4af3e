#include "gateway/task/evidence_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "launcher/base/text.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

EgressRequest Answer(std::vector<std::string> tools, std::string_view finish) {
  EgressRequest request;
  request.path = "/v1/messages";
  request.status = request.upstream_status = 200;
  request.tools_called = std::move(tools);
  request.finish = finish;
  return request;
}

// A run of two answers, the first of which called a tool; told and recorded alike.
Evidence Alike() {
  Evidence evidence;
  evidence.max_turns = 4;
  evidence.end.outcome = gate::JobOutcome::kExited;
  evidence.run.outcome = StreamOutcome::kSuccess;
  evidence.run.reply = "the reply";
  evidence.run.has_result = true;
  evidence.run.used_tool = true;
  evidence.run.steps = 1;
  evidence.run.tools = {"Read"};
  evidence.run.usage = {true, 20, 8, 0};
  evidence.egress.requests = {Answer({"Read"}, "tool_use"), Answer({}, "end_turn")};
  evidence.egress.tools_called = {"Read"};
  EgressTotals& totals = evidence.egress.totals;
  totals.requests = totals.model_calls = 2;
  totals.steps = totals.tool_calls = 1;
  totals.input_tokens = 20;
  totals.output_tokens = 8;
  return evidence;
}

std::vector<std::string> Kinds(const std::function<void(Evidence&)>& change) {
  Evidence evidence = Alike();
  change(evidence);
  std::vector<std::string> kinds;
  for (const EvidenceDifference& found : FindDifferences(evidence)) kinds.emplace_back(found.what);
  return kinds;
}

TEST(EvidenceDifferencesTest, WhatIsToldAndRecordedAlikeDoesNotDiffer) {
  EXPECT_THAT(Kinds([](Evidence&) {}), IsEmpty());
  EXPECT_THAT(Kinds([](Evidence& e) { e.run.usage.seen = false; }), IsEmpty());
  EXPECT_THAT(Kinds([](Evidence& e) {
                e.run.step_limit = true;  // four calls of models are four turns
                e.egress.totals.model_calls = 4;
                e.egress.requests.pop_back();
              }),
              IsEmpty());
}

TEST(EvidenceDifferencesTest, WhereNoBrokerReadsThereIsNothingToCompare) {
  EXPECT_THAT(Kinds([](Evidence& e) { e.egress = {}, e.credential_inside = true; }), IsEmpty());
  EXPECT_THAT(Kinds([](Evidence& e) { e.egress = {}, e.on_host = true; }), IsEmpty());
}

TEST(EvidenceDifferencesTest, AReplyWithoutAnAnswerDiffers) {
  EXPECT_THAT(Kinds([](Evidence& e) {
                e.egress = {};
                e.run = {};
                e.run.reply = "made up";
              }),
              ElementsAre("reply"));
}

TEST(EvidenceDifferencesTest, MoreStepsThanWereAskedForDiffer) {
  EXPECT_THAT(Kinds([](Evidence& e) { e.run.steps = 2; }), ElementsAre("steps"));
  EXPECT_THAT(Kinds([](Evidence& e) { e.run.step_limit = true; }), ElementsAre("steps"));
  EXPECT_THAT(Kinds([](Evidence& e) { e.run.steps = 0; }), IsEmpty()) << "codex leaves some out";
  const auto many = [](std::string_view tool) {
    return [tool](Evidence& e) {
      e.runtime = Runtime::kCodex;
      e.run.steps = 2;
      e.run.tools.clear();
      e.egress.tools_called = {std::string(tool)};
    };
  };
  EXPECT_THAT(Kinds(many("exec_command")), ElementsAre("steps"));
  EXPECT_THAT(Kinds(many("exec")), IsEmpty()) << "a script of its code mode calls many";
}

TEST(EvidenceDifferencesTest, AToolThatNoModelCalledDiffers) {
  const auto told = [](Evidence& e) { e.run.tools = {"Read", "Bash"}; };
  EXPECT_THAT(Kinds(told), ElementsAre("tools"));
  Evidence evidence = Alike();
  told(evidence);
  EXPECT_EQ(FindDifferences(evidence)[0].told, "the tool Bash");
  EXPECT_THAT(Kinds([](Evidence& e) { e.run.tools = {"Re\nad"}; }), IsEmpty())
      << "names are cleaned on either side";
  EXPECT_THAT(Kinds([](Evidence& e) {
                e.run.tools = {"Bash"};
                e.egress.tools_called.assign(kEgressNamesKept, "Read");
              }),
              IsEmpty())
      << "a full record does not know";
}

TEST(EvidenceDifferencesTest, AToolThatIsKeptBackDiffersInAWholeRun) {
  const auto kept_back = [](Evidence& e) { e.run.tools.clear(), e.run.steps = 0; };
  EXPECT_THAT(Kinds(kept_back), ElementsAre("tools"));
  auto but = [&](const std::function<void(Evidence&)>& change) {
    return Kinds([&](Evidence& e) { kept_back(e), change(e); });
  };
  EXPECT_THAT(but([](Evidence& e) { e.runtime = Runtime::kCodex; }), IsEmpty());
  EXPECT_THAT(but([](Evidence& e) { e.runtime = Runtime::kOpenAiCompat; }), ElementsAre("tools"));
  EXPECT_THAT(but([](Evidence& e) { e.run.has_result = false; }), IsEmpty());
  EXPECT_THAT(but([](Evidence& e) { e.end.exit.reason = cell::ExitReason::kDeadline; }), IsEmpty());
  EXPECT_THAT(but([](Evidence& e) { e.egress.requests[0].code = "egress_upstream"; }), IsEmpty())
      << "an answer that broke off is not heeded";
  EXPECT_THAT(but([](Evidence& e) { e.egress.requests[0].finish = "max_tokens"; }), IsEmpty())
      << "nor the tools of one that was cut";
}

TEST(EvidenceDifferencesTest, AnEndWhileTheModelWaitsForItsToolDiffers) {
  EXPECT_THAT(Kinds([](Evidence& e) { e.egress.requests.pop_back(); }), ElementsAre("finish"));
  EXPECT_THAT(Kinds([](Evidence& e) {
                e.egress.requests.back() = Answer({}, "");
                e.egress.requests.back().path = "/v1/messages/count_tokens";
              }),
              ElementsAre("finish"))
      << "a count of tokens is no answer";
}

TEST(EvidenceDifferencesTest, ABlameThatNoProviderSpokeOfDiffers) {
  auto blames = [](StreamOutcome outcome, uint64_t EgressTotals::*recorded) {
    return Kinds([&](Evidence& e) {
      e.run.outcome = outcome;
      e.run.reply.reset();
      if (recorded != nullptr) e.egress.totals.*recorded = 1;
    });
  };
  EXPECT_THAT(blames(StreamOutcome::kRateLimited, nullptr), ElementsAre("finish"));
  EXPECT_THAT(blames(StreamOutcome::kRateLimited, &EgressTotals::rate_limited), IsEmpty());
  EXPECT_THAT(blames(StreamOutcome::kRateLimited, &EgressTotals::billing), IsEmpty());
  EXPECT_THAT(blames(StreamOutcome::kAuthFailed, nullptr), ElementsAre("finish"));
  EXPECT_THAT(blames(StreamOutcome::kAuthFailed, &EgressTotals::auth_failures), IsEmpty());
  EXPECT_THAT(blames(StreamOutcome::kAuthFailed, &EgressTotals::refused), IsEmpty())
      << "the broker's own 403 reads like that";
}

TEST(EvidenceDifferencesTest, MoreTokensThanWereCountedDiffer) {
  EXPECT_THAT(Kinds([](Evidence& e) { e.run.usage.input = 21; }), ElementsAre("tokens"));
  EXPECT_THAT(Kinds([](Evidence& e) { e.run.usage.output = 9; }), ElementsAre("tokens"));
  EXPECT_THAT(Kinds([](Evidence& e) { e.run.usage.input = 1; }), IsEmpty())
      << "a program need not count all it asked";
}

TEST(EvidenceDifferencesTest, FewerTokensThanCameWithItsAnswersDifferForTheLoop) {
  auto told = [](uint64_t input, uint64_t output, const std::function<void(Evidence&)>& change) {
    return Kinds([&](Evidence& e) {
      e.runtime = Runtime::kOpenAiCompat;
      for (EgressRequest& request : e.egress.requests) {
        request.input_tokens = 10;
        request.output_tokens = 4;
      }
      e.run.usage = {true, input, output, 0};
      if (change) change(e);
    });
  };
  EXPECT_THAT(told(20, 8, nullptr), IsEmpty());
  EXPECT_THAT(told(19, 8, nullptr), ElementsAre("tokens"));
  EXPECT_THAT(told(20, 7, nullptr), ElementsAre("tokens"));
  EXPECT_THAT(told(20, 7, [](Evidence& e) { e.run.outcome = StreamOutcome::kStepLimit; }),
              IsEmpty())
      << "it may have ended for an answer it could not read";
  EXPECT_THAT(told(20, 7, [](Evidence& e) { e.run.has_result = false; }), IsEmpty());
  EXPECT_THAT(told(10, 4, [](Evidence& e) { e.egress.requests[0].code = "egress_cut"; }), IsEmpty())
      << "nor counts one that was cut";
  EXPECT_THAT(told(19, 7, [](Evidence& e) { e.runtime = Runtime::kClaude; }), IsEmpty());
}

TEST(EvidenceDifferencesTest, ACallIsToldOnceHoweverOftenItsMessageComes) {
  auto call = [](std::string_view id, std::string_view tool) {
    return Text(R"({"type":"assistant","message":{"content":[{"type":"tool_use","id":")", id,
                R"(","name":")", tool, "\"}]}}\n");
  };
  const ParsedRun run = ParseRun(
      Runtime::kClaude, 30,
      Text(call("t1", "Bash"), call("t1", "Bash"), call("t2", "Read"), call("t3", "Bash")), "", 0);
  EXPECT_EQ(run.steps, 3U);
  EXPECT_THAT(run.tools, ElementsAre("Bash", "Read"));
  const ParsedRun nameless =
      ParseRun(Runtime::kClaude, 30, Text(call("", "Bash"), call("", "Bash")), "", 0);
  EXPECT_EQ(nameless.steps, 2U) << "better too many than too few";
  std::string many;
  for (std::size_t count = 0; count <= kMaxToldTools; ++count)
    many += call(Text(count), Text("tool", count));
  EXPECT_EQ(ParseRun(Runtime::kOpenAiCompat, 30, many, "", 0).tools.size(), kMaxToldTools);
}

TEST(EvidenceDifferencesTest, TheyAreOneEventAndAWarning) {
  const test::TempDirectory directory("differences");
  Result<Home> opened = OpenHome(directory.path());
  ASSERT_TRUE(opened.ok()) << opened.error().text;
  const Home& home = opened.value();
  Receipt receipt;
  receipt.agent = "a1";
  receipt.run_id = "r1";
  ASSERT_TRUE(NoteDifferences(home, "claude", receipt).ok());
  EXPECT_THAT(receipt.warnings, IsEmpty());
  EXPECT_EQ(directory.Get("security_audit.jsonl"), "") << "nothing differs: no event";

  receipt.differences = {{"steps", "9 calls of tools", "1 calls of tools"},
                         {"finish", "an end", "the last answer calls a tool"}};
  ASSERT_TRUE(NoteDifferences(home, "claude", receipt).ok());
  EXPECT_THAT(directory.Get("security_audit.jsonl"),
              HasSubstr("\"event_type\":\"task_sandbox_evidence_differs\",\"agent_id\":\"a1\","
                        "\"severity\":\"warning\",\"details\":{\"run_id\":\"r1\",\"runtime\":"
                        "\"claude\",\"what\":\"steps,finish\"}}\n"));
  ASSERT_EQ(receipt.warnings.size(), 1U);
  EXPECT_THAT(receipt.warnings[0], HasSubstr("steps: it told 9 calls of tools"));
  EXPECT_THAT(ReceiptJson(receipt),
              HasSubstr(R"("evidence_differs":[{"what":"steps","told":"9 calls of tools",)"
                        R"("recorded":"1 calls of tools"},{"what":"finish","told":"an end",)"));
}

}  // namespace
}  // namespace taskcell::gateway
