#pragma once

#include <cstdint>

#include "launcher/base/result.h"
#include "launcher/sys/process.h"

namespace taskcell::attack {

// A process that is in no cell and takes what processor time it can get: what it gets tells a limit
// from a busy host. Killed with the object, with its parent, and in any case after a while.
class FreeProcess {
 public:
  static Result<FreeProcess> Start();

  // Ends it: the milliseconds it got of each second.
  Result<uint64_t> End();

 private:
  FreeProcess(sys::Child child, uint64_t start_us)
      : child_(std::move(child)), start_us_(start_us) {}

  sys::Child child_;
  uint64_t start_us_;
};

}  // namespace taskcell::attack
