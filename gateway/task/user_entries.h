#pragma once

#include <string>
#include <vector>

#include "gateway/task/native_root.h"
#include "gateway/task/run_directory.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"

namespace taskcell::gateway {

// The files that give a cell's user and group a name, without which git, npm and ssh fail. Their
// descriptors pin what is mounted and must outlive the cell.
struct UserEntries {
  std::vector<UniqueFd> pins;
  std::vector<std::string> warnings;
};

// Writes both files into the run's directory and plans them at /etc/passwd and /etc/group of
// `plan`, whose ids are set. They hold root, nobody and the cell's own ids, called `agent`: an
// image's own entries cannot be read. In a root directory a file can be mounted only on one that is
// there; a name it has no plain file for gets a warning instead. Error code workspace_failed.
Result<UserEntries> PlanUserEntries(const RunDirectory& directory, const NativeRoot& root,
                                    cell::CellPlan& plan);

}  // namespace taskcell::gateway
