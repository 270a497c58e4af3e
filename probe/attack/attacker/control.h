#pragma once

#include "launcher/base/result.h"
#include "probe/attack/payload.h"

namespace taskcell::attack {

// Puts the calling process, outside of a cell, where the payload's control is to be tried: other
// ids, new namespaces. Where it makes namespaces it returns in their process 1, and the process
// that called waits for that one and ends as it did. It must have one thread.
Status TakeControlsPlace(Control control);

// Does what kBeVictim says, and returns only where it could not.
Status BeVictim(int out);

}  // namespace taskcell::attack
