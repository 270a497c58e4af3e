#pragma once

#include <cstdint>
#include <string>

namespace taskcell::gateway {

// The calendar month (UTC) of a moment (unix seconds): "2026-12".
std::string MonthOf(int64_t now_s);

// When the next one begins (unix seconds).
int64_t NextMonth(int64_t now_s);

}  // namespace taskcell::gateway
