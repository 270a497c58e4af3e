#pragma once

#include <cstdlib>

namespace taskcell::test {

// True where the whole program runs as on a kernel without openat2(2), or under a filter that
// forbids it: see AGAIN_WITHOUT_OPENAT2 of taskcell_test.
inline bool IsWithoutOpenat2() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  return std::getenv("TASKCELL_TEST_OPENAT2") != nullptr;
}

// A number of rounds for a race: the walk that stands in for openat2 is slower by far.
inline int RaceRounds(int with_openat2) {
  constexpr int kFewer = 20;
  return IsWithoutOpenat2() ? with_openat2 / kFewer : with_openat2;
}

}  // namespace taskcell::test
