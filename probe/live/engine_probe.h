#pragma once

#include <functional>

#include "probe/engine/endpoint.h"
#include "probe/live/live.h"

namespace taskcell::live {

// Breaks the limits of containers of the engine at `endpoint`, from an image made on the spot and
// removed afterwards unless `keep_image`. A container that runs removes itself when this process is
// killed; one that was not started yet, image and scratch directory then go with a later probe.
Report ProbeEngine(const probe::Endpoint& endpoint, const Asked& asked, bool keep_image,
                   const std::function<bool()>& stopped);

}  // namespace taskcell::live
