#pragma once

#include "launcher/native/options.h"

namespace taskcell::native {

// taskcell-launch --check: asks of this caller on this host, by doing it, what a launch depends on:
// the ids, a place for each controller's limit, a whole cell, and each limit broken in it by
// taskcell-breaker. Prints a line for each to standard output, a failed one with its reason and
// remedy. Returns 0 when all passed, 1 when one did not, kExitFailed when that could not be said.
int RunCheck(const Options& options);

}  // namespace taskcell::native
