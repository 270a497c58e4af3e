#pragma once

#include <stdlib.h>

#include "launcher/base/text.h"

namespace taskcell::test {

// How many whole launches a race is made of: ./dev check asks for many more.
inline int RaceLaunches() {
  constexpr uint64_t kUsual = 300;
  const char* asked = ::secure_getenv("TASKCELL_RACE_LAUNCHES");
  return static_cast<int>(ParseUnsigned(asked == nullptr ? "" : asked).value_or(kUsual));
}

}  // namespace taskcell::test
