#include "gateway/task/answer.h"

#include <gtest/gtest.h>

#include "gateway/task/answer_json.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

TaskAnswer Failed(std::string code, std::string message) {
  TaskAnswer answer;
  answer.code = std::move(code);
  answer.message = std::move(message);
  return answer;
}

TEST(AnswerTest, RefusalHasTheGuidesForm) {
  TaskAnswer answer = AnswerFor(Error(Kind::kConfig, "why").Coded("no_account"));
  EXPECT_EQ(answer.message, "Task sandbox unavailable (no_account): why");
  EXPECT_EQ(
      DelegationReply(answer),
      "⚠️ 子任務未執行（任務沙箱）：Task sandbox unavailable (no_account): why");
  EXPECT_EQ(AnswerFor(Error(Kind::kConfig, "why").Coded("invalid_config")).message,
            "Task sandbox unavailable (invalid_config): the sandbox configuration is invalid: why");
}

TEST(AnswerTest, FailureHasTheGuidesForm) {
  TaskAnswer answer = AnswerFor(Error(Kind::kViolation, "why").Coded("tool_violation"));
  EXPECT_EQ(answer.message, "why");
  EXPECT_EQ(DelegationReply(answer),
            "⚠️ 子任務失敗（任務沙箱，tool_violation）：why");
  EXPECT_EQ(AnswerFor(Error(Kind::kInternal, "x")).code, "internal_error");
}

TEST(AnswerTest, ReplyIsDeliveredAsItIs) {
  TaskAnswer answer;
  answer.reply = "the reply\n";
  EXPECT_EQ(DelegationReply(answer), "the reply\n");
}

TEST(AnswerTest, WordsAndStatusesFollowTheCode) {
  struct Row {
    std::string_view code, word;
    int status;
  };
  for (const Row& row :
       {Row{"ok", "success", 0}, Row{"invalid_config", "refused", 3},
        Row{"image_missing", "refused", 3}, Row{"resource_limits_unenforced", "refused", 3},
        Row{"invalid_prompt", "refused", 2}, Row{"agent_not_found", "refused", 2},
        Row{"unknown_kind", "refused", 2}, Row{"gateway_lost", "failed", 4},
        Row{"interrupted", "failed", 4}, Row{"timeout", "timed_out", 124},
        Row{"stopped", "cancelled", 130}, Row{"auth_failed", "auth_failed", 1},
        Row{"step_limit", "step_limit", 1}, Row{"rate_limited", "rate_limited", 1},
        Row{"tool_violation", "tool_violation", 1}, Row{"cell_mismatch", "failed", 1},
        Row{"no_reply", "failed", 1}}) {
    EXPECT_EQ(OutcomeWord(row.code), row.word) << row.code;
    EXPECT_EQ(ExitStatus(row.code), row.status) << row.code;
    EXPECT_EQ(IsUnavailable(row.code), row.status == 3) << row.code;
  }
}

TEST(AnswerTest, AGatewayThatTakesNothingInRefusesWithoutBypass) {
  for (std::string_view code : {"queue_full", "gateway_stopping", "too_many_clients"}) {
    EXPECT_EQ(OutcomeWord(code), "refused") << code;
    EXPECT_EQ(ExitStatus(code), 3) << code;
    EXPECT_FALSE(IsUnavailable(code)) << "it says nothing about the sandbox: " << code;
  }
}

TEST(AnswerTest, JsonHoldsAllThatIsReadBack) {
  TaskAnswer answer;
  answer.code = "timeout";
  answer.message = "too \"long\"";
  answer.detail = "more";
  answer.step_limit = true;
  answer.by_gateway = true;
  answer.task_id = "t1";
  answer.receipt_path = "/r";
  answer.receipt_json = "{\"a\":1}";
  answer.warnings = {"one", "two"};
  EXPECT_EQ(AnswerJson(ParseAnswer(AnswerJson(answer)).value()), AnswerJson(answer));
  answer.reply = "reply";
  EXPECT_EQ(ParseAnswer(AnswerJson(answer))->reply, "reply");
  for (const char* bad : {"", "{}", "[]", "{\"code\":1}"})
    EXPECT_EQ(ParseAnswer(bad).error().kind, Kind::kViolation) << bad;
}

TEST(AnswerTest, MessageIsOneBoundedLineOfWholeCharacters) {
  EXPECT_EQ(OneLine(" a\n b\t\tc ", 10), "a b c");
  EXPECT_EQ(OneLine("0123456789", 10), "0123456789");
  EXPECT_EQ(OneLine("01234567890", 10), "0123456...");
  for (std::size_t limit = 4; limit < 30; ++limit) {
    const std::string line = OneLine("韓國韓國韓國韓國韓國", limit);
    EXPECT_LE(line.size(), limit);
    EXPECT_TRUE(IsUtf8(line)) << limit;
  }
  TaskAnswer answer = AnswerFor(Error(Kind::kConfig, std::string(1000, 'x')).Coded("no_account"));
  EXPECT_EQ(answer.message.size(), kMaxMessageBytes);
  EXPECT_EQ(answer.detail.size(), kMaxDetailBytes);
}

TEST(AnswerTest, SecretIsRedactedEverywhere) {
  EXPECT_EQ(Redact("a sk-secret-1 b sk-secret-1", "sk-secret-1"), "a <redacted> b <redacted>");
  const std::string google = "AIza" + std::string(30, 'x');
  EXPECT_EQ(Redact("a " + google + ". " + google, ""), "a <redacted>. <redacted>");
  EXPECT_EQ(Redact("AIza" + std::string(29, 'x'), ""), "AIza" + std::string(29, 'x'));
  EXPECT_EQ(Redact("short", "short"), "short");  // 5 bytes: would redact ordinary words
  EXPECT_EQ(Failed("x", "y").ok(), false);
}

}  // namespace
}  // namespace taskcell::gateway
