#pragma once

#include <span>

#include "launcher/base/result.h"
#include "launcher/init/options.h"

namespace taskcell::init {

// Everything taskcell-init does once it knows its options: opens the gate, hands out the listener,
// attests, waits for the job, runs it, waits for kDone. What fails before the job is also told over
// the gate as kRefused. `environment` is init's own.
Status RunCell(const Options& options, std::span<const char* const> environment);

}  // namespace taskcell::init
