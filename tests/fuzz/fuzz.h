#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

// Every target defines this one function; libFuzzer (preset fuzz) or replay.cc (every other build)
// calls it. A target ends a broken promise with Require.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

namespace taskcell::fuzz {

inline void Require(bool promise) {
  if (!promise) std::abort();
}

inline std::string_view TextOf(const uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes the first byte off `input`, for choosing what to do with the rest; 0 when it is empty.
inline uint8_t TakeByte(std::string_view& input) {
  if (input.empty()) return 0;
  uint8_t first = static_cast<uint8_t>(input[0]);
  input.remove_prefix(1);
  return first;
}

}  // namespace taskcell::fuzz
