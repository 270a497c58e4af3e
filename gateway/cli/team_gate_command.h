#pragma once

#include <string>

namespace taskcell::gateway {

// `taskcell team-gate`: prints whether the agent's goal rounds may be a team's, and the rule that
// decided. `mode` as ParseTeamGateMode. Returns the exit status: 0, 2 no such home, agent or mode,
// 3 an agent whose configuration is invalid.
int TeamGateCommand(const std::string& home_option, const std::string& agent,
                    const std::string& mode, bool json);

}  // namespace taskcell::gateway
