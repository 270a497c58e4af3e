#pragma once

#include <string>

namespace taskcell::gateway {

// `taskcell shell AGENT`: a shell at this terminal, in the agent's verified cell. Returns the exit
// status: the shell's; 2 no terminal, or no such home; 3 the cell is refused; 124 its time was
// over; 125 it was not run to its end; 130 ended from outside.
int ShellCommand(const std::string& home_option, const std::string& agent);

}  // namespace taskcell::gateway
