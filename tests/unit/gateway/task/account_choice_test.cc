#include "gateway/task/account_choice.h"

#include <gtest/gtest.h>

#include <functional>

#include "gateway/task/renew_payer.h"

namespace taskcell::gateway {
namespace {

constexpr int64_t kNow = 1000000;

Account MakeAccount(const std::string& id, AccountType type = AccountType::kApiKey) {
  Account account;
  account.id = id;
  account.type = type;
  account.secret = "s";
  return account;
}

AccountState State(const std::string& id, int64_t cooling_until, int64_t last_used = 0) {
  AccountState state;
  state.id = id;
  state.fingerprint = MakeAccount(id).Fingerprint();
  state.cooling_until = cooling_until;
  state.cooling_because = "rate limit";
  state.last_used = last_used;
  return state;
}

std::vector<std::string> Order(const std::vector<Account>& accounts,
                               const std::vector<AccountState>& states, RotationStrategy strategy) {
  std::vector<std::string> ids;
  const std::vector<Account> order = OrderAccounts(accounts, {states, {}}, strategy, kNow).value();
  for (const Account& account : order) ids.push_back(account.id);
  return ids;
}

using Ids = std::vector<std::string>;

TEST(AccountChoiceTest, PriorityKeepsTheOrderAndLeavesOutWhatIsCooling) {
  const std::vector<Account> accounts = {MakeAccount("a"), MakeAccount("b"), MakeAccount("c")};
  EXPECT_EQ(Order(accounts, {}, RotationStrategy::kPriority), (Ids{"a", "b", "c"}));
  EXPECT_EQ(Order(accounts, {State("a", kNow + 1)}, RotationStrategy::kPriority), (Ids{"b", "c"}));
  EXPECT_EQ(Order(accounts, {State("a", kNow)}, RotationStrategy::kPriority), (Ids{"a", "b", "c"}))
      << "its time is over";
}

TEST(AccountChoiceTest, WhereTheClockWasSetBackNobodyRestsForAllThatTime) {
  const std::vector<Account> accounts = {MakeAccount("a"), MakeAccount("b")};
  const AccountState learnt_tomorrow = State("a", kNow + 86400 + 30, kNow + 86400);
  EXPECT_EQ(Order(accounts, {learnt_tomorrow}, RotationStrategy::kPriority), (Ids{"a", "b"}));
  const AccountState learnt_now = State("a", kNow + 30, kNow);
  EXPECT_EQ(Order(accounts, {learnt_now}, RotationStrategy::kPriority), Ids{"b"}) << "control";
}

TEST(AccountChoiceTest, AReplacedSecretIsNotHeldToWhatTheOldOneDid) {
  Account replaced = MakeAccount("a");
  replaced.secret = "another";
  EXPECT_EQ(Order({replaced}, {State("a", kNow + 1)}, RotationStrategy::kPriority), (Ids{"a"}));
  EXPECT_EQ(replaced.Fingerprint().find("another"), std::string::npos);
}

TEST(AccountChoiceTest, RoundRobinTakesTheOneUsedLongestAgo) {
  const std::vector<Account> accounts = {MakeAccount("a"), MakeAccount("b"), MakeAccount("c")};
  EXPECT_EQ(Order(accounts, {State("a", 0, 30), State("b", 0, 10), State("c", 0, 20)},
                  RotationStrategy::kRoundRobin),
            (Ids{"b", "c", "a"}));
  EXPECT_EQ(Order(accounts, {State("a", 0, 30)}, RotationStrategy::kRoundRobin),
            (Ids{"b", "c", "a"}));
}

TEST(AccountChoiceTest, LeastCostTakesSubscriptionsFirst) {
  const std::vector<Account> accounts = {MakeAccount("key"),
                                         MakeAccount("old", AccountType::kOauth),
                                         MakeAccount("new", AccountType::kOauth)};
  EXPECT_EQ(
      Order(accounts, {State("old", 0, 10), State("new", 0, 20)}, RotationStrategy::kLeastCost),
      (Ids{"old", "new", "key"}));
}

TEST(AccountChoiceTest, AnAccountThatSpentItsMonthIsPassedOverUntilTheNext) {
  constexpr int64_t kCent = 1'000'000;
  Account small = MakeAccount("small");
  small.budget_cents = 100;
  const Account other = MakeAccount("other");
  auto order = [&](int64_t microcents) {
    return OrderAccounts({small, other}, {{}, {{"small", microcents, 0}}},
                         RotationStrategy::kPriority, kNow);
  };
  EXPECT_EQ(order(100 * kCent - 1).value().front().id, "small") << "a part of a cent is left";
  EXPECT_EQ(order(100 * kCent).value().front().id, "other");
  Result<std::vector<Account>> none =
      OrderAccounts({small}, {{}, {{"small", 123 * kCent, 0}}}, RotationStrategy::kPriority, kNow);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, "no_account");
  EXPECT_NE(none.error().text.find("account `small`: its monthly_budget_cents (100) is spent (123),"
                                   " until 1970-02-01T00:00:00"),
            std::string::npos)
      << none.error().text;
  small.budget_cents = 0;
  EXPECT_FALSE(OrderAccounts({small}, {}, RotationStrategy::kPriority, kNow).ok());
}

TEST(AccountChoiceTest, LeastCostTakesTheKeyThatSpentLeast) {
  const AccountHistory history{{State("a", 0, 10), State("b", 0, 20)}, {{"a", 5, 0}, {"b", 4, 0}}};
  const std::vector<Account> order = OrderAccounts({MakeAccount("a"), MakeAccount("b")}, history,
                                                   RotationStrategy::kLeastCost, kNow)
                                         .value();
  EXPECT_EQ(order.front().id, "b");
}

TEST(AccountChoiceTest, WhenAllAreCoolingEachIsNamedWithItsReasonAndItsEnd) {
  Result<std::vector<Account>> none = OrderAccounts(
      {MakeAccount("a"), MakeAccount("b")}, {{State("a", kNow + 60), State("b", kNow + 1)}, {}},
      RotationStrategy::kPriority, kNow);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, "no_account");
  EXPECT_NE(none.error().text.find("account `a`: rate limit, until 1970-01-12T13:47:40"),
            std::string::npos)
      << none.error().text;
  EXPECT_NE(none.error().text.find("account `b`"), std::string::npos);
}

TEST(AccountChoiceTest, OfManyThatWaitFourAreNamed) {
  std::vector<Account> accounts;
  std::vector<AccountState> states;
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    accounts.push_back(MakeAccount(id));
    states.push_back(State(id, kNow + 60));
  }
  Result<std::vector<Account>> none =
      OrderAccounts(accounts, {states, {}}, RotationStrategy::kPriority, kNow);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().text.find("account `d`"), std::string::npos) << none.error().text;
  EXPECT_EQ(none.error().text.find("account `e`"), std::string::npos) << none.error().text;
}

Evidence With(const std::function<void(EgressTotals&)>& change) {
  Evidence evidence;
  change(evidence.egress.totals);
  return evidence;
}

TEST(AccountLessonTest, TheBrokersRecordAndNotTheStreamTeaches) {
  Evidence forged = With([](EgressTotals&) {});
  forged.run.outcome = StreamOutcome::kAuthFailed;
  EXPECT_FALSE(LearnAboutAccount(forged, "no_reply").outcome.has_value());
  EXPECT_EQ(LearnAboutAccount(With([](EgressTotals& t) { t.model_calls = 1; }), "").outcome,
            AccountOutcome::kSuccess);
  EXPECT_EQ(LearnAboutAccount(With([](EgressTotals& t) { t.model_calls = 1; }), "timeout").outcome,
            AccountOutcome::kSuccess)
      << "what the program did is not the account's fault";
  EXPECT_EQ(LearnAboutAccount(With([](EgressTotals& t) { t.provider_errors = 1; }),
                              "provider_unavailable")
                .outcome,
            AccountOutcome::kError);
}

TEST(AccountLessonTest, ARateLimitTeachesAlsoWhereTheRunWasEndedWithoutAnAnswer) {
  auto lesson = [](std::string_view code, uint64_t model_calls, uint64_t billing = 0) {
    return LearnAboutAccount(With([&](EgressTotals& t) {
                               t.rate_limited = 1;
                               t.billing = billing;
                               t.retry_after_seconds = 9;
                               t.model_calls = model_calls;
                             }),
                             code);
  };
  for (std::string_view code : {"timeout", "stopped", "step_limit", "output_overflow"}) {
    EXPECT_EQ(lesson(code, 0).outcome, AccountOutcome::kRateLimited) << code;
    EXPECT_EQ(lesson(code, 0).retry_after_s, 9) << code;
    EXPECT_FALSE(lesson(code, 0).may_try_another) << code;
    EXPECT_EQ(lesson(code, 0, 1).outcome, AccountOutcome::kBilling) << code;
    EXPECT_EQ(lesson(code, 1).outcome, AccountOutcome::kSuccess) << code;
  }
  EXPECT_FALSE(lesson("tool_violation", 0).outcome.has_value());
}

TEST(AccountLessonTest, AnotherIsTriedOnlyWhereTheProviderRefusedAndNoToolRan) {
  auto lesson = [](std::string_view code, uint64_t tool_calls) {
    return LearnAboutAccount(With([&](EgressTotals& t) {
                               t.auth_failures = 1;
                               t.rate_limited = 1;
                               t.retry_after_seconds = 9;
                               t.tool_calls = tool_calls;
                             }),
                             code);
  };
  EXPECT_TRUE(lesson("auth_failed", 0).may_try_another);
  EXPECT_TRUE(lesson("rate_limited", 0).may_try_another);
  EXPECT_FALSE(lesson("rate_limited", 1).may_try_another);
  EXPECT_FALSE(lesson("timeout", 0).may_try_another);
  EXPECT_EQ(lesson("auth_failed", 0).outcome, AccountOutcome::kAuthFailed);
  EXPECT_EQ(lesson("rate_limited", 0).outcome, AccountOutcome::kRateLimited);
  EXPECT_EQ(lesson("rate_limited", 0).retry_after_s, 9);
  Evidence billing = With([](EgressTotals& t) { t.billing = 1; });
  EXPECT_EQ(LearnAboutAccount(billing, "rate_limited").outcome, AccountOutcome::kBilling);
}

// The sums do not tell which came first, the answer or the refusal: the verdict does.
TEST(AccountLessonTest, BesideAnAnswerTheVerdictTellsWhetherTheRateLimitCounts) {
  auto lesson = [](std::string_view code, uint64_t billing = 0) {
    return LearnAboutAccount(With([&](EgressTotals& t) {
                               t.model_calls = 2;
                               t.rate_limited = 1;
                               t.billing = billing;
                               t.retry_after_seconds = 9;
                             }),
                             code);
  };
  EXPECT_EQ(lesson("rate_limited").outcome, AccountOutcome::kRateLimited);
  EXPECT_EQ(lesson("rate_limited").retry_after_s, 9);
  EXPECT_TRUE(lesson("rate_limited").may_try_another) << "it spoke, but no tool ran";
  EXPECT_EQ(lesson("rate_limited", 1).outcome, AccountOutcome::kBilling);
  for (std::string_view code : {"", "timeout", "transport_failed", "tool_violation"}) {
    EXPECT_EQ(lesson(code).outcome, AccountOutcome::kSuccess) << code;
    EXPECT_EQ(lesson(code).retry_after_s, 0) << code;
    EXPECT_FALSE(lesson(code).may_try_another) << code;
  }
}

TEST(AccountLessonTest, ARunThatBrokeTeachesNothingOfARateLimit) {
  for (std::string_view code : {"transport_failed", "result_incomplete", "supervisor_refused",
                                "invalid_config", "tool_violation"}) {
    const AccountLesson lesson =
        LearnAboutAccount(With([](EgressTotals& t) { t.rate_limited = 1; }), code);
    EXPECT_FALSE(lesson.outcome.has_value()) << code;
    EXPECT_FALSE(lesson.may_try_another) << code;
    EXPECT_EQ(LearnAboutAccount(With([](EgressTotals& t) {
                                  t.rate_limited = 1;
                                  t.provider_errors = 1;
                                }),
                                code)
                  .outcome,
              AccountOutcome::kError)
        << code;
  }
}

TEST(AccountLessonTest, ASpentBudgetTeachesNothingAndLetsAnotherPayWhileNoToolRan) {
  auto lesson = [](uint64_t model_calls, uint64_t tool_calls) {
    return LearnAboutAccount(With([&](EgressTotals& t) {
                               t.budget_spent = true;
                               t.model_calls = model_calls;
                               t.tool_calls = tool_calls;
                             }),
                             "budget_spent");
  };
  EXPECT_FALSE(lesson(0, 0).outcome.has_value());
  EXPECT_TRUE(lesson(0, 0).may_try_another);
  EXPECT_EQ(lesson(1, 0).outcome, AccountOutcome::kSuccess);
  EXPECT_TRUE(lesson(1, 0).may_try_another);
  EXPECT_FALSE(lesson(1, 1).may_try_another);
}

TEST(AccountLessonTest, WhetherAToolRanTheStreamTellsOnlyWhereNoBrokerReads) {
  auto lesson = [](std::string_view code, bool used_tool, bool on_host, bool credential_inside) {
    Evidence evidence;
    evidence.on_host = on_host;
    evidence.credential_inside = credential_inside;
    evidence.run.used_tool = used_tool;
    return LearnAboutAccount(evidence, code);
  };
  for (std::string_view code : {"rate_limited", "auth_failed"}) {
    EXPECT_TRUE(lesson(code, false, true, false).may_try_another) << code;
    EXPECT_FALSE(lesson(code, true, true, false).may_try_another) << code;
    EXPECT_TRUE(lesson(code, false, false, true).may_try_another) << code;
    EXPECT_FALSE(lesson(code, true, false, true).may_try_another) << code;
    EXPECT_TRUE(lesson(code, true, false, false).may_try_another) << "forged: " << code;
  }
  EXPECT_EQ(lesson("rate_limited", true, true, false).outcome, AccountOutcome::kRateLimited);
  EXPECT_EQ(lesson("", true, true, false).outcome, AccountOutcome::kSuccess);
  EXPECT_EQ(lesson("", true, false, true).outcome, AccountOutcome::kSuccess);
  EXPECT_FALSE(lesson("no_reply", true, true, false).outcome.has_value());
  EXPECT_FALSE(lesson("", true, false, false).outcome.has_value()) << "forged";
}

TEST(AccountLessonTest, ALoginThatIsNotRenewedLetsAnotherPayUnlessTheFaultIsOurs) {
  auto lesson = [](std::string_view code) {
    return LessonOfRenewal(Error(Kind::kSystem, "told to fail").Coded(code));
  };
  EXPECT_EQ(lesson("auth_failed").outcome, AccountOutcome::kAuthFailed);
  EXPECT_TRUE(lesson("auth_failed").may_try_another);
  EXPECT_EQ(lesson("provider_unavailable").outcome, AccountOutcome::kError);
  EXPECT_TRUE(lesson("provider_unavailable").may_try_another);
  for (std::string_view code : {"stopped", "workspace_failed", "timeout", ""}) {
    EXPECT_FALSE(lesson(code).outcome.has_value()) << code;
    EXPECT_FALSE(lesson(code).may_try_another) << code;
  }
}

}  // namespace
}  // namespace taskcell::gateway
