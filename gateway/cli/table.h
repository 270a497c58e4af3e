#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taskcell::gateway {

// The lines of rows of as many columns as the first has, each column as wide as it must be.
std::string TableOf(const std::vector<std::vector<std::string>>& rows);

// "2026-10-02T08:15:30Z"; "-" for 0.
std::string TimeText(int64_t unix_ms);

}  // namespace taskcell::gateway
