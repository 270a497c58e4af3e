#pragma once

#include "probe/attack/payload.h"

namespace taskcell::attack {

// Tries one payload in the way it asks for and writes its outcome to `out` as one line (see
// OutcomeLine). Payloads that are not tried in a child (IsInChild) may end this process. Returns
// false where the outcome could not be written.
bool RunPayload(const Payload& payload, const Targets& targets, int out);

}  // namespace taskcell::attack
