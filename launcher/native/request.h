#pragma once

#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/job.h"
#include "launcher/native/mount_source.h"
#include "launcher/native/options.h"

namespace taskcell::native {

// What the command line asks for, as the values everything else works from. Holds the pins on the
// planned sources; they must stay until the cell is gone.
struct LaunchRequest {
  cell::CellPlan plan;
  cell::Job job;
  std::vector<DetachedMount> detached;
  std::vector<UniqueFd> pins;
};

// Opens and checks the sources, and makes plan and job. `run_id` is 32 lowercase hex digits, `term`
// the caller's TERM or empty.
Result<LaunchRequest> MakeRequest(const Options& options, const std::string& run_id,
                                  const std::string& term);

// The job's environment: made from nothing, `term` taken over, `extra` (NAME=VALUE) last and
// winning over what was there. Pure.
std::vector<std::string> MakeEnvironment(const std::vector<std::string>& extra,
                                         const std::string& term);

// The writable file systems of a cell: /tmp and /workspace, sized to fit the memory limit they
// count against, with what the command line says about them or adds. Pure.
std::vector<cell::PlannedTmpfs> PlanTmpfs(const Options& options);

// 32 random hex digits.
Result<std::string> MakeRunId();

}  // namespace taskcell::native
