#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace taskcell::gateway {

// `json` with what each of its strings has behind its first `kept` bytes left out, so that a large
// body is judged by what rules look at and costs no more than a look. The result is JSON in UTF-8
// exactly where `json` is, with the same values but for the ends of its long strings: what is left
// out is whole characters and whole escapes of two bytes, and nothing of a string that has \u from
// there on. Of what is not JSON, the part before the fault is treated so. Pure.
std::string ShortenStrings(std::string_view json, std::size_t kept);

}  // namespace taskcell::gateway
