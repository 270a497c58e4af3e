#pragma once

#include <string>

#include "gateway/sweep/sweep.h"

namespace taskcell::gateway {

// The report as one JSON object.
std::string SweepJson(const SweepReport& report);

// `taskcell sweep`: removes what killed runs left behind, and prints it, one line each. Returns the
// exit status: 0 nothing is left that should not be, 1 something could not be removed, 2 no such
// home.
int SweepCommand(const std::string& home_option, bool dry_run, bool json);

}  // namespace taskcell::gateway
