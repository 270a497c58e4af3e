#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// Names this process for good: "<pid> <start time in ticks> <boot id>". No other process of this
// host ever has the same.
Result<std::string> OwnerOfThisProcess();

// Whether the process of that name still runs. One that cannot be looked up, or a name that makes
// no sense, counts as alive: nothing is taken from a process that may be there.
bool IsOwnerAlive(std::string_view owner);

}  // namespace taskcell::gateway
