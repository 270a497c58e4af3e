#pragma once

#include <string>

namespace taskcell::gateway {

// `taskcell ps`: the newest tasks of a home from its ledger, one line each, with `all` every one
// that is kept. Returns the exit status: 0, 2 no such home.
int PsCommand(const std::string& home_option, bool all, bool json);

// `taskcell show ID`: one task with its cells; an unambiguous beginning of the id will do. Returns
// the exit status: 0, 1 no such task, 2 no such home.
int ShowCommand(const std::string& home_option, const std::string& id, bool json);

}  // namespace taskcell::gateway
