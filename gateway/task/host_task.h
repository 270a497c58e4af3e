#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "gateway/config/agent_config.h"
#include "gateway/config/home.h"
#include "gateway/task/answer.h"
#include "gateway/task/task.h"
#include "gateway/task/task_record.h"

namespace taskcell::gateway {

// Runs a task on the host itself, without isolation: the runtime's own program in the agent's
// directory, paid for by an account of the rotator. `note_bypass` where the sandbox was to run it:
// what made the sandbox unavailable (no account, no time limit) does not stop it where the program
// can do without. Called once nothing is ahead but the program's start; where it fails nothing is
// started. Begins `record` where there is none yet; whoever called ends it.
TaskAnswer RunHostTask(const Home& home, const Agent& agent, const TaskRequest& request,
                       Surroundings& surroundings, std::chrono::steady_clock::time_point begun,
                       const std::function<Status()>& note_bypass,
                       std::optional<TaskRecord>& record);

}  // namespace taskcell::gateway
