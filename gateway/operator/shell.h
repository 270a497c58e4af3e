#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "gateway/config/home.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// How long a person may stay in a cell.
inline constexpr uint64_t kShellLimitMs = uint64_t{12} * 3600 * 1000;

// A shell for the person at this process's terminal (standard input and output), in the cell that a
// task of the agent would get now: admitted, planned, mounted, limited and verified as that, with
// its listeners there and nobody behind them; with egress "open" it has the engine's network too.
// No account is looked at, no credential and no route exist. Returns the exit status of the shell,
// 130 where it was ended from outside, 124 where kShellLimitMs was over. `tell` gets lines for the
// person before the shell starts. To be called once in a process that has no other thread yet.
// Error codes as of a task's refusal, and sandbox_disabled, shell_missing.
Result<int> RunShell(const Home& home, const std::string& agent, Surroundings& surroundings,
                     const std::function<void(std::string_view)>& tell);

}  // namespace taskcell::gateway
