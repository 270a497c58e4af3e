#pragma once

#include <string>

namespace taskcell::gateway {

// `taskcell doctor`: prints what Diagnose says, a row each, or one JSON object. Returns the exit
// status: 0; 1 when an agent whose sandbox is on would be refused now; 2 no such home.
int DoctorCommand(const std::string& home_option, bool json);

}  // namespace taskcell::gateway
