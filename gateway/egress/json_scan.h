#pragma once

#include <optional>
#include <string_view>

#include "gateway/egress/refusal.h"

namespace taskcell::gateway {

// Reads a request body once without keeping it and refuses what must not reach a second parser:
// text that is not one JSON object in valid UTF-8, a byte order mark, an object with the same key
// twice (compared after unescaping: parsers differ on which one counts), nesting deeper than
// kEgressJsonDepth, more than kEgressJsonNodes values.
std::optional<Refusal> ScanJson(std::string_view body);

}  // namespace taskcell::gateway
