#pragma once

#include <cstdint>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// Whether a round of a goal may be worked on by a team (planner, executor, verifier, synthesiser).
enum class TeamGateMode : uint8_t { kAuto, kAlwaysSolo, kAlwaysTeam };

// "auto", "always_solo" or "always_team"; kUsage for anything else.
Result<TeamGateMode> ParseTeamGateMode(std::string_view name);

struct TeamDecision {
  std::string_view decision;  // "solo", "team", or "grey_band": whoever asks weighs the task itself
  std::string_view reason;    // the rule that decided
};

// The first rule is that an agent whose sandbox is on works alone, whatever the mode: the members
// of a team would run on the host. Pure.
TeamDecision DecideTeam(bool sandbox_enabled, TeamGateMode mode);

// Passes the roles of a team's members (planner, executor, verifier, synthesiser) and the empty
// one, which asks for none; error code unknown_role for anything else.
Status CheckTeamRole(std::string_view role);

}  // namespace taskcell::gateway
