#pragma once

#include "launcher/native/options.h"

namespace taskcell::native {

// taskcell-launch as a command: makes the cell, verifies it, runs the program in it, prints at most
// one message on standard error and returns the exit status.
int RunCommand(const Options& options);

}  // namespace taskcell::native
