#include "gateway/task/usage.h"

#include <gtest/gtest.h>

#include <limits>

#include "gateway/config/toml_document.h"

namespace taskcell::gateway {
namespace {

Prices SomePrices() {
  return ReadPrices(
             ParseToml("[taskcell.prices.m]\ninput = 100\noutput = 1000\ncached_input = 10\n", "c")
                 .value())
      .value();
}

EgressRequest Call(std::string model = "m") {
  EgressRequest request;
  request.path = "/v1/messages";
  request.upstream_status = 200;
  request.model = std::move(model);
  request.input_tokens = 50;
  request.cached_tokens = 20;
  request.output_tokens = 7;
  request.finish = "end_turn";
  request.bytes_up = 400;
  request.bytes_down = 3200;
  return request;
}

TEST(UsageTest, CountsWhatTheProviderSaid) {
  EgressRecord record;
  record.requests = {Call(), Call("unknown")};
  const TaskUsage usage = UsageOf(record, SomePrices(), "anthropic");
  EXPECT_EQ(usage.model_calls, 2U);
  EXPECT_EQ(usage.estimated_calls, 0U);
  EXPECT_EQ(usage.unpriced_calls, 1U);
  EXPECT_EQ(usage.input_tokens, 100U);
  EXPECT_EQ(usage.output_tokens, 14U);
  EXPECT_EQ(usage.microcents, 30U * 100 + 20 * 10 + 7 * 1000);
}

// A program that hangs up before the provider tells its tokens pays all the same.
TEST(UsageTest, AnAnswerThatWasCutOffOrSaysNothingIsEstimated) {
  EgressRequest cut = Call();
  cut.finish.clear();
  EgressRequest silent = Call();
  silent.input_tokens = silent.cached_tokens = silent.output_tokens = 0;
  for (const EgressRequest& request : {cut, silent}) {
    EgressRecord record;
    record.requests = {request};
    const TaskUsage usage = UsageOf(record, SomePrices(), "anthropic");
    EXPECT_EQ(usage.estimated_calls, 1U);
    EXPECT_EQ(usage.output_tokens, 200U);
    EXPECT_GE(usage.input_tokens, 50U);
    EXPECT_GE(usage.microcents, 200'000U);
  }
}

// Else a task would be answered for nothing by going away before the head of each answer.
TEST(UsageTest, ARequestThatNobodyWaitedForIsEstimatedOnceItWasOnItsWay) {
  for (const char* code : {"egress_client_gone", "egress_detached", "egress_timeout"}) {
    EgressRecord record;
    EgressRequest request;
    request.path = "/v1/messages";
    request.model = "m";
    request.code = code;
    request.bytes_up = 400;
    record.requests = {request};
    EXPECT_EQ(UsageOf(record, SomePrices(), "anthropic").model_calls, 0U) << "it never left";
    record.requests[0].relayed = true;
    const TaskUsage usage = UsageOf(record, SomePrices(), "anthropic");
    EXPECT_EQ(usage.estimated_calls, 1U) << code;
    EXPECT_EQ(usage.input_tokens, 100U);
    EXPECT_EQ(usage.microcents, 100U * 100);
    record.requests[0].code = "egress_unreachable";
    EXPECT_EQ(UsageOf(record, SomePrices(), "anthropic").model_calls, 0U) << "no answer was begun";
    record.requests[0].code = code;
    record.requests[0].path = "/v1/messages/count_tokens";
    EXPECT_EQ(UsageOf(record, SomePrices(), "anthropic").model_calls, 0U);
  }
}

TEST(UsageTest, RefusalsAndCountsOfTokensCostNothing) {
  EgressRecord record;
  record.requests = {Call(), Call()};
  record.requests[0].upstream_status = 429;
  record.requests[1].path = "/v1/messages/count_tokens";
  EXPECT_EQ(UsageOf(record, SomePrices(), "anthropic").model_calls, 0U);
}

TEST(UsageTest, SumsStayAtWhatFits) {
  TaskUsage sum;
  TaskUsage run;
  run.microcents = std::numeric_limits<uint64_t>::max();
  run.model_calls = 1;
  run.is_known = false;
  Add(run, sum);
  Add(run, sum);
  EXPECT_EQ(sum.microcents, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(sum.model_calls, 2U);
  EXPECT_FALSE(sum.is_known);
}

}  // namespace
}  // namespace taskcell::gateway
