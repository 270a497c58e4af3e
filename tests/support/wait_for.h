#pragma once

#include <chrono>
#include <thread>

namespace taskcell::test {

// Looks until `holds()` is true; false when it is not within a minute, which is longer than a busy
// machine needs for anything a test waits for.
template <typename Condition>
[[nodiscard]] bool WaitFor(Condition holds) {
  constexpr std::chrono::milliseconds kLook{5};
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace taskcell::test
