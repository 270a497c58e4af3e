#pragma once

#include "launcher/base/result.h"
#include "probe/attack/payload.h"
#include "probe/attack/world.h"

namespace taskcell::attack {

// Tries the payload outside of any cell, in the place its control names, and tells what came of it.
// An Error says that it could not even be tried.
Result<Attempted> TryOutside(const World& world, const Payload& payload);

}  // namespace taskcell::attack
