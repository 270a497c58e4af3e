#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "probe/attack/payload.h"

namespace taskcell::attack {

// One line of taskcell-attacker, with its newline:
//   {"payload":"uid-0","result":1,"name":"EPERM","detail":"..."}
// where "result" is as in Attempted and "name" what NameOf makes of it. Pure.
std::string OutcomeLine(std::string_view payload, const Attempted& attempted);

// Reads one line without its newline. kViolation for anything else and for another payload. Pure.
Result<Attempted> ParseOutcome(std::string_view line, std::string_view payload);

}  // namespace taskcell::attack
