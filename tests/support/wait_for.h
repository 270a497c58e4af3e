#pragma once

#include <chrono>
#include <thread>

namespace taskcell::test {

// Lasts a minute from when it is made, which is longer than a busy machine needs for anything a
// test waits for.
class Patience {
 public:
  bool Lasts() const { return std::chrono::steady_clock::now() < end_; }

 private:
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::minutes(1);
};

// Looks until `holds()` is true; false when it is not for a whole Patience.
template <typename Condition>
[[nodiscard]] bool WaitFor(Condition holds) {
  constexpr std::chrono::milliseconds kLook{5};
  const Patience patience;
  while (!holds()) {
    if (!patience.Lasts()) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace taskcell::test
