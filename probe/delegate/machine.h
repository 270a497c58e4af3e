#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "probe/delegate/change.h"

namespace taskcell::probe::delegate {

// What changes are made on: the files below a directory, "/" or a test's, and how a program is run.
// Every path is walked from that directory without following a link.
struct Machine {
  UniqueFd root;
  std::function<Status(const std::vector<std::string>&)> run;
};

// This host.
Result<Machine> OpenThisMachine();

// What is at a change's place now, as Change::before. A file whose bytes can't be kept (over
// kMaxUnitFileBytes, or not UTF-8) and what is of another kind than the change are an Error.
Result<Before> Look(const Machine& machine, const Change& change);

// Makes a change and reads back that it is made; one that is made already is left alone. Where a
// link or another user's file is in the way that is kDenied and nothing was done.
Status Make(const Machine& machine, const Change& change);

// Whether Make would do nothing.
Result<bool> IsMade(const Machine& machine, const Change& change);

// Puts back what was there before the change, whether it was made whole, by half or not at all.
// Returns "" or why it was left as it is: somebody else changed or uses it.
Result<std::string> Undo(const Machine& machine, const Change& change);

}  // namespace taskcell::probe::delegate
