#pragma once

#include <cstdint>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::native {

// What a person writes for a quantity. All pure; the Error says what is taken.

// Bytes: a whole number, with K, M or G for powers of 1024. Not 0.
Result<uint64_t> ParseSize(std::string_view text);

// Thousandths of a core from a decimal number of cores such as "2", "0.5" or "1.25". Not 0.
Result<uint64_t> ParseCpus(std::string_view text);

// Milliseconds from a whole number with ms, s, m or h; without one: seconds. Not 0.
Result<uint64_t> ParseDuration(std::string_view text);

// A whole number from 1 to `highest`.
Result<uint64_t> ParseCount(std::string_view text, uint64_t highest);

}  // namespace taskcell::native
