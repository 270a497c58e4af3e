#pragma once

#include <string>
#include <vector>

namespace taskcell::gateway {

// `taskcell doctor --hostile`: prints what escape attempts came to in cells made as a task's, a row
// each, or as one JSON object. `attacks` as of AttackHome. Returns the exit status: 0 all that
// could be proven here was contained, 1 something escaped or a cell was not what was planned, 2 no
// such home or attack, or nothing could be proven, 130 stopped.
int HostileCommand(const std::string& home_option, const std::vector<std::string>& attacks,
                   bool json);

}  // namespace taskcell::gateway
