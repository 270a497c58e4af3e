#include "gateway/config/team_gate.h"

#include <gtest/gtest.h>

#include <string>

namespace taskcell::gateway {
namespace {

TEST(TeamGateTest, TheSandboxDecidesBeforeEveryMode) {
  struct Row {
    bool sandbox_enabled;
    std::string mode, decision, reason;
  };
  for (const Row& row :
       {Row{true, "auto", "solo", "sandbox_enabled"},
        Row{true, "always_solo", "solo", "sandbox_enabled"},
        Row{true, "always_team", "solo", "sandbox_enabled"},
        Row{false, "auto", "grey_band", "auto"}, Row{false, "always_solo", "solo", "always_solo"},
        Row{false, "always_team", "team", "always_team"}}) {
    const TeamDecision decision =
        DecideTeam(row.sandbox_enabled, ParseTeamGateMode(row.mode).value());
    EXPECT_EQ(decision.decision, row.decision) << row.sandbox_enabled << row.mode;
    EXPECT_EQ(decision.reason, row.reason) << row.sandbox_enabled << row.mode;
  }
}

TEST(TeamGateTest, AnUnknownModeIsRefused) {
  for (const char* mode : {"", "Auto", "always_teams", "solo"})
    EXPECT_FALSE(ParseTeamGateMode(mode).ok()) << mode;
}

TEST(TeamGateTest, OnlyTheFourMembersOfATeamAreRoles) {
  for (const char* role : {"planner", "executor", "verifier", "synthesiser"})
    EXPECT_TRUE(CheckTeamRole(role).ok()) << role;
  EXPECT_TRUE(CheckTeamRole("").ok()) << "asks for none";
  for (const char* role : {"solo", "Planner", "planner "})
    EXPECT_EQ(CheckTeamRole(role).error().code, "unknown_role") << role;
}

}  // namespace
}  // namespace taskcell::gateway
