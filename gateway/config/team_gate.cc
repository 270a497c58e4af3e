#include "gateway/config/team_gate.h"

#include <algorithm>
#include <array>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"planner", "executor", "verifier",
                                                    "synthesiser"};

}  // namespace

Result<TeamGateMode> ParseTeamGateMode(std::string_view name) {
  if (name == "auto") return TeamGateMode::kAuto;
  if (name == "always_solo") return TeamGateMode::kAlwaysSolo;
  if (name == "always_team") return TeamGateMode::kAlwaysTeam;
  return Error(Kind::kUsage, Text("there is no team gate `", Printable(name.substr(0, 64)),
                                  "`; it is auto, always_solo or always_team"));
}

TeamDecision DecideTeam(bool sandbox_enabled, TeamGateMode mode) {
  if (sandbox_enabled) return {"solo", "sandbox_enabled"};
  switch (mode) {
    case TeamGateMode::kAlwaysSolo:
      return {"solo", "always_solo"};
    case TeamGateMode::kAlwaysTeam:
      return {"team", "always_team"};
    case TeamGateMode::kAuto:
      break;
  }
  return {"grey_band", "auto"};
}

Status CheckTeamRole(std::string_view role) {
  if (role.empty() || std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end()) return Ok();
  return Error(Kind::kUsage, Text("there is no team role `", Printable(role.substr(0, 64)),
                                  "`; it is planner, executor, verifier or synthesiser"))
      .Coded("unknown_role");
}

}  // namespace taskcell::gateway
