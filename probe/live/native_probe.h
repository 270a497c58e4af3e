#pragma once

#include <functional>

#include "probe/live/live.h"

namespace taskcell::live {

// Breaks the limits of cells that taskcell-launch makes on this host. Nothing is left behind,
// however this process ends: each cell's launcher outlives it and cleans up.
Report ProbeNative(const Asked& asked, const std::function<bool()>& stopped);

}  // namespace taskcell::live
