#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/agent_config.h"
#include "gateway/config/home.h"
#include "gateway/task/admission.h"
#include "gateway/task/run_directory.h"
#include "gateway/task/user_entries.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/mounts/stored_snapshot.h"

namespace taskcell::gateway {

// A task whose cell can be made. The descriptors pin every mounted inode and must outlive the cell.
struct PlannedTask {
  RunDirectory directory;
  mounts::StoredSnapshot snapshot;
  UserEntries user;
  UniqueFd input;     // the copy of what is seen at /input
  UniqueFd loop_pin;  // openai_compat and antigravity only
  probe::CellIds ids;
  cell::CellPlan plan;
  std::string prompt;  // whole, as the AI gets it

  // Of the entries that were left out, and of what the root lacks.
  std::vector<std::string> Warnings() const;
};

// Takes the snapshot of the agent directory and a copy of the task's inputs, reads the prompt's
// instructions from it and builds the plan of the cell. Error codes: container_refused,
// workspace_failed, agent_dir_unmountable, stopped, invalid_input; the run directory is gone again
// after one.
Result<PlannedTask> PlanTask(const Home& home, const Agent& agent, const Admission& admission,
                             const Surroundings& surroundings, const TaskRequest& request);

// A plan of one run of this home that nothing is mounted in and no limit is set for yet; its
// deadline is `timeout_ms` from now.
cell::CellPlan EmptyPlan(const Home& home, const std::string& agent, const std::string& run_id,
                         uint64_t timeout_ms);

// The read-only mount at `target` of what lies at `source`, which `info` tells of.
cell::PlannedMount MountOf(const std::string& source, std::string_view target, cell::EntryKind kind,
                           const struct stat& info);

// Sets the section's limits and the two tmpfs they govern.
void PlanLimits(const SandboxSettings& settings, cell::CellPlan& plan);

}  // namespace taskcell::gateway
