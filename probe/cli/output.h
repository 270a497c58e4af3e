#pragma once

#include <string_view>

#include "launcher/base/error.h"
#include "probe/print/print.h"

namespace taskcell::probe {

// Writes `text` to standard output; false where that failed, which was then said on standard error.
[[nodiscard]] bool Print(std::string_view text);

// Says what went wrong on standard error, and returns the exit status for it.
int Complain(const Error& error);

// Colour where standard output is a terminal and NO_COLOR is not set, its width, else 100 columns.
TableStyle StyleOfOutput();

}  // namespace taskcell::probe
