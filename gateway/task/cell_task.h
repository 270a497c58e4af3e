#pragma once

#include <chrono>
#include <optional>

#include "gateway/config/agent_config.h"
#include "gateway/config/home.h"
#include "gateway/task/answer.h"
#include "gateway/task/task.h"
#include "gateway/task/task_record.h"

namespace taskcell::gateway {

// What became of a task that was to run in a cell.
struct CellTask {
  TaskAnswer answer;
  bool cell_made = false;            // one of its own, or one may have been; however it turned out
  std::optional<TaskRecord> record;  // nullopt: it was not admitted; not ended yet
};

// Steps 1 to 9: admission, plan, cell, verification, job, evidence, verdict, receipt, clean-up.
// Whoever called audits a refusal and ends the record.
CellTask RunCellTask(const Home& home, const Agent& agent, const TaskRequest& request,
                     Surroundings& surroundings, std::chrono::steady_clock::time_point begun);

}  // namespace taskcell::gateway
