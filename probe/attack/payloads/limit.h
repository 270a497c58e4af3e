#pragma once

#include <cstddef>

#include "probe/attack/payload.h"
#include "probe/live/breaker/break.h"

namespace taskcell::attack {

// What is filled is filled in such pieces.
inline constexpr std::size_t kBlock = 65536;

// What taskcell-probe live does to a limit, as the outcome of a payload.
Attempted BreakLimit(const live::Attempt& attempt);

// Waits for a moment with all that was taken, so that a process outside would come to lack it.
void StayFull();

}  // namespace taskcell::attack
