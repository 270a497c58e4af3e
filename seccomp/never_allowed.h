#pragma once

#include "seccomp/profile.h"

namespace taskcell::seccomp {

// Adds the rules that hold in every cell, whatever its profile says: what reaches past the cell
// through a terminal that is the caller's, and the core limit that keeps a crash from the host's
// handler. Nothing else in a cell stands in for these.
void AddNeverAllowed(Profile& profile);

}  // namespace taskcell::seccomp
