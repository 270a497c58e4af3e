#include "gateway/config/rotation.h"

#include <gtest/gtest.h>

#include "gateway/config/toml_document.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

Result<Rotation> Read(std::string_view lines) {
  return ReadRotation(ParseToml(Text("[rotation]\n", lines), "config.toml").value());
}

TEST(RotationTest, EachStrategyOfThePlatformIsKnown) {
  EXPECT_EQ(Read("").value().strategy, RotationStrategy::kPriority);
  EXPECT_EQ(Read("strategy = \"priority\"").value().strategy, RotationStrategy::kPriority);
  EXPECT_EQ(Read("strategy = \"failover\"").value().strategy, RotationStrategy::kPriority);
  EXPECT_EQ(Read("strategy = \"round_robin\"").value().strategy, RotationStrategy::kRoundRobin);
  EXPECT_EQ(Read("strategy = \"least_cost\"").value().strategy, RotationStrategy::kLeastCost);
  EXPECT_TRUE(Read("strategy = \"least_cost\"").value().warnings.empty());
}

TEST(RotationTest, AnUnknownStrategyIsPriorityWithAWarning) {
  Rotation rotation = Read("strategy = \"random\"").value();
  EXPECT_EQ(rotation.strategy, RotationStrategy::kPriority);
  ASSERT_EQ(rotation.warnings.size(), 1U);
  EXPECT_NE(rotation.warnings[0].find("[rotation] strategy is unknown"), std::string::npos);
}

TEST(RotationTest, CooldownIsAPositiveNumberOfSecondsUpToADay) {
  EXPECT_EQ(Read("").value().rate_limit_cooldown_s, 120);
  EXPECT_EQ(Read("cooldown_after_rate_limit_seconds = 86400").value().rate_limit_cooldown_s, 86400);
  for (std::string_view value : {"0", "-1", "86401", "\"120\"", "1.5"}) {
    Result<Rotation> rotation = Read(Text("cooldown_after_rate_limit_seconds = ", value));
    ASSERT_FALSE(rotation.ok()) << value;
    EXPECT_EQ(rotation.error().code, "invalid_config");
  }
  EXPECT_FALSE(Read("strategy = 1").ok());
  EXPECT_TRUE(Read("health_check_interval_seconds = 60").ok()) << "the platform's own key";
}

}  // namespace
}  // namespace taskcell::gateway
