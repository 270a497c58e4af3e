#pragma once

#include <string_view>

#include "launcher/sys/output.h"

namespace taskcell::gateway {

// Writes to standard output what was asked for; false, and told on standard error, where not all of
// it could be written.
[[nodiscard]] inline bool PrintOutput(std::string_view text) {
  return sys::PrintOutput("taskcell", text);
}

// Says a line to a person, on standard error.
inline void Tell(std::string_view line) { sys::PrintMessage("taskcell", line); }

}  // namespace taskcell::gateway
