#pragma once

#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::sys {

// The standard streams of a command, for people and scripts to read. `program` is the command's own
// name, which stands before all that is said on standard error.

// To be called before anything else is opened. A closed stream is opened as /dev/null, so that no
// descriptor of the command's own becomes one; a reader that is gone and a file that may not grow
// become failed writes like any other instead of signals. Fails where standard output is closed:
// what was asked for would have nowhere to go.
Status PrepareStreams();

// Writes all of `text` to standard output; false, and told, where not all of it could be written.
[[nodiscard]] bool PrintOutput(std::string_view program, std::string_view text);

// Says "<program>: <text>" on standard error, in one write, whoever's words are in it: of control
// bytes only "\n  " stays, which begins a further line. A failure is not told: there is no place.
void PrintMessage(std::string_view program, std::string_view text);

}  // namespace taskcell::sys
