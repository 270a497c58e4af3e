#pragma once

#include <string>

namespace taskcell::gateway {

// `taskcell cancel ID`: ends a task that waits, asks one that runs to end. Returns the exit status:
// 0, 1 no such task or it has ended, 2 no such home, 4 no gateway serves it.
int CancelCommand(const std::string& home_option, const std::string& id, bool json);

// `taskcell logs ID`: a line for each step of a task, from the ledger once it has ended. Returns
// the exit status: 0, 1 no such task, 2 no such home, 4 it runs and no gateway serves the home.
int LogsCommand(const std::string& home_option, const std::string& id, bool json);

// `taskcell accounts`: all accounts of a home and whether they may be used now. Returns the exit
// status: 0, 1 they cannot be read, 2 no such home.
int AccountsCommand(const std::string& home_option, bool json);

}  // namespace taskcell::gateway
