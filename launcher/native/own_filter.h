#pragma once

#include <string>

#include "launcher/base/result.h"

namespace taskcell::native {

// Compiles the seccomp profile (Docker's JSON format) at `path` by taskcell-profile, a program of
// ours of its own: CellPlan::filter.
Result<std::string> CompileProfile(const std::string& path);

}  // namespace taskcell::native
