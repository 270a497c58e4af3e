#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "probe/delegate/machine.h"
#include "probe/delegate/plan.h"

namespace taskcell::probe::delegate {

// Makes the changes of a plan's steps, in their order. What was there before is on the disk
// (RecordStore) before the first of them, so that Revert undoes whatever part was made. Changes
// that are made already are left alone, and a plan that was applied before keeps what it then
// found. The Error names the step; what came before it stays.
Status Apply(const Plan& plan, const Machine& machine);

struct Reverted {
  bool was_applied = false;
  std::vector<std::string> left;  // what stays, and why; it can be tried again later
};

// Undoes what Apply recorded for the user, the last change first, and nothing else. What somebody
// else uses or has changed since stays, and stays recorded.
Result<Reverted> Revert(uint32_t uid, const Machine& machine);

}  // namespace taskcell::probe::delegate
