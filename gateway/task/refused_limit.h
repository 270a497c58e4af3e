#pragma once

#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"

namespace taskcell::gateway {

// Where an engine refused to create or start a container for one of its limits, in its own words
// ("Range of CPUs is from 0.01 to 2.00", "Minimum memory limit allowed is 6MB"): the same error,
// which begins with the key of config.toml that sets the limit, and its value. Every other error is
// returned as it is. Its code stays: what the engine says decides nothing.
Error NameRefusedLimit(Error error, const cell::Limits& limits);

}  // namespace taskcell::gateway
