#pragma once

#include <string>

#include "launcher/base/result.h"
#include "probe/delegate/plan.h"

namespace taskcell::probe::delegate {

struct LiveRun {
  int status = 0;      // taskcell-probe's exit status, or 128 + the signal that ended it
  std::string output;  // what it printed
};

// Runs `taskcell-probe live` as the plan's user, with an environment of its own, in a cgroup as
// that user's programs would have it: a scope of the user's manager, for which it is waited a
// moment, or the prepared directories. Its errors go to standard error. Needs root and one thread.
Result<LiveRun> TryLive(const Plan& plan, bool json);

}  // namespace taskcell::probe::delegate
