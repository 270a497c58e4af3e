#pragma once

#include "launcher/native/options.h"

namespace taskcell::native {

// taskcell-launch as a command: makes the cell, verifies it, runs the program in it, prints at most
// one message on standard error and returns the exit status.
int RunCommand(const Options& options);

// The command line could not be read: prints that, leaves no older report where one was asked for
// (`report`, may be empty), and returns the exit status.
int RefuseCommandLine(const Error& error, const std::string& report);

}  // namespace taskcell::native
