#pragma once

#include <mutex>
#include <set>
#include <string>

#include "gateway/config/home.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// Whether rootless engines, and our own launcher, enforce limits, as found by cells without a job.
// A pass is kept for each engine as long as this object lives; a failure is tried again by the next
// task. Any thread may ask; one probe runs at a time.
class LimitsProbe {
 public:
  // Makes a cell of the task's image, or of the host's programs where the launcher makes it, with
  // its limits and with nothing of the task in it, compares its limits from inside and outside, and
  // removes it; nothing is left on disk. Error code resource_limits_unenforced: the engine reports
  // other limits than asked, others are in force, or the cell's first process did not attest in
  // time. docker_unreachable: its sockets or processes are not this host's. Others as
  // CellEngine::Make. stopped: `cancel_fd`, as in Surroundings, was readable; also while another
  // probe's end was waited for.
  Status Check(const Home& home, probe::CellEngine& engine, const SandboxSettings& settings,
               const Programs& programs, int cancel_fd = -1);

 private:
  std::timed_mutex mutex_;
  std::set<std::string> passed_;  // identities
};

}  // namespace taskcell::gateway
