#pragma once

#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/job.h"

namespace taskcell::init {

// The job's ends of the relay; not valid where the job inherits init's own 0, 1 and 2.
struct JobStreams {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

// Gives the calling child its session or group, its 0, 1 and 2, and unblocks its signals. Before
// the confinement. `stage` names the step that failed, here and below.
Status TakeStreams(cell::JobStdio stdio, const JobStreams& streams, std::string_view& stage);

// After the confinement (no path of a job reaches what the job itself may not write): ignores the
// signals the job is to ignore, makes the job's home, directories and files, goes to its
// working directory, closes every descriptor but 0, 1, 2 and `report_fd` (which closes itself on
// exec) and executes it. Returns only to tell why not.
Error ExecuteJob(const cell::Job& job, int landlock_abi, int report_fd, std::string_view& stage);

}  // namespace taskcell::init
