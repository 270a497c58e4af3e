#include "gateway/config/prices.h"

#include <gtest/gtest.h>

#include <limits>

#include "gateway/config/retention.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/config/toml_document.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

Result<TaskcellSettings> Read(std::string_view text) {
  return ReadTaskcellSettings(ParseToml(text, "config.toml").value());
}

TEST(PricesTest, AreReadByModelAndByProviderAndModel) {
  const Prices prices = Read(R"(
[taskcell.prices.m1]
input = 300
output = 1500.5
[taskcell.prices."openrouter/m1"]
input = 1
output = 2
cached_input = 0
cache_write = 0.0001
)")
                            ->prices;
  const Price plain = prices.Of("anthropic", "m1").value();
  EXPECT_EQ(plain.input, 300'000U);
  EXPECT_EQ(plain.output, 1'500'500U);
  EXPECT_EQ(plain.cached_input, 300'000U) << "as input where it is not set";
  EXPECT_EQ(plain.cache_write, 300'000U);
  const Price other = prices.Of("openrouter", "m1").value();
  EXPECT_EQ(other.input, 1000U);
  EXPECT_EQ(other.cached_input, 0U);
  EXPECT_EQ(other.cache_write, 1U) << "rounded up";
  EXPECT_FALSE(prices.Of("anthropic", "m2").has_value());
  EXPECT_TRUE(Read("")->prices.empty());
}

TEST(PricesTest, WhatMakesNoSenseIsRefusedByName) {
  for (std::string_view text :
       {"prices = 1", "prices.m = 3", "prices.m = {input = 1}", "prices.m = {output = 1}",
        "prices.m = {input = -1, output = 1}", "prices.m = {input = 1, output = nan}",
        "prices.m = {input = inf, output = 1}", "prices.m = {input = \"1\", output = 1}",
        "prices.m = {input = 1, output = 1000001}", "prices.m = {input = 1, output = 1, x = 1}"}) {
    Result<TaskcellSettings> settings = Read(Text("[taskcell]\n", text));
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_EQ(settings.error().code, "invalid_config");
    EXPECT_NE(settings.error().text.find("taskcell.prices"), std::string::npos)
        << settings.error().text;
  }
  EXPECT_TRUE(Read("[taskcell]\nprices.m = {input = 0, output = 1000000}").ok());
}

TEST(PricesTest, CostIsRoundedUpAndCannotOverflow) {
  const Price price{3'000'000, 15'000'000, 300'000, 3'750'000};  // 3000, 15000, 300, 3750 cents
  EXPECT_EQ(CostInMicrocents(price, {1'000'000, 0, 0, 0}), 3'000'000'000U) << "3000 cents";
  EXPECT_EQ(CostInMicrocents(price, {1000, 400, 100, 10}),
            500U * 3000 + 400U * 300 + 100U * 3750 + 10U * 15000);
  EXPECT_EQ(CostInMicrocents({1, 0, 1, 1}, {1, 0, 0, 0}), 1U);
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  constexpr uint64_t kDear = kMaxPriceCents * 1000;
  EXPECT_EQ(CostInMicrocents({kDear, kDear, kDear, kDear}, {kMost, kMost, kMost, kMost}),
            2 * kMaxTokens * kMaxPriceCents);
}

TEST(RetentionTest, EachKindHasItsTwoBoundsAndNoneByDefault) {
  const Retention none = Read("")->retention;
  for (const Bound* bound : {&none.receipts, &none.exports, &none.logs, &none.ledger})
    EXPECT_FALSE(bound->is_set());
  const Retention all = Read(R"([taskcell.retention]
receipts_days = 1
exports_bytes = 2
logs_days = 3
logs_bytes = 4
ledger_days = 36500
)")
                            ->retention;
  EXPECT_EQ(all.receipts.days, 1U);
  EXPECT_EQ(all.exports.bytes, 2U);
  EXPECT_EQ(all.logs.days, 3U);
  EXPECT_EQ(all.logs.bytes, 4U);
  EXPECT_EQ(all.ledger.days, 36500U);
  for (std::string_view line : {"receipts_days = 0", "receipts_days = 36501", "logs_bytes = -1",
                                "ledger_days = \"1\"", "exports_days = 1.5", "days = 3"}) {
    Result<TaskcellSettings> settings = Read(Text("[taskcell.retention]\n", line));
    ASSERT_FALSE(settings.ok()) << line;
    EXPECT_NE(settings.error().text.find("[taskcell.retention]"), std::string::npos)
        << settings.error().text;
  }
}

}  // namespace
}  // namespace taskcell::gateway
