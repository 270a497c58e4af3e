#pragma once

#include <span>

#include "launcher/base/result.h"

namespace taskcell::sys {

// Fills `buffer` from getrandom(2).
Status FillRandom(std::span<unsigned char> buffer);

}  // namespace taskcell::sys
