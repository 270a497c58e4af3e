#pragma once

#include <cstdlib>

namespace taskcell::test {

// True where the whole program runs as on a kernel without openat2(2), or under a filter that
// forbids it: see AGAIN_WITHOUT_OPENAT2 of taskcell_test.
inline bool IsWithoutOpenat2() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  return std::getenv("TASKCELL_TEST_OPENAT2") != nullptr;
}

// True where a race is to have fewer rounds: the walk that stands in for openat2 is slower by far,
// as is a machine that is emulated.
inline bool HasFewRounds() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  return IsWithoutOpenat2() || std::getenv("TASKCELL_TEST_FEW_ROUNDS") != nullptr;
}

// A number of rounds for a race.
inline int RaceRounds(int usual) {
  constexpr int kFewer = 20;
  return HasFewRounds() ? usual / kFewer : usual;
}

}  // namespace taskcell::test
