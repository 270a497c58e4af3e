#pragma once

#include <cstdint>

namespace taskcell::native {

// How long a cell must be quiet before its launcher gives memory back (ReleaseProgramCode).
inline constexpr int kRestAfterMs = 100;

// When a job is ended: `timeout_ms` (0: never) after its start it gets SIGTERM, and `grace_ms`
// after that everything in its cell is killed.
struct TimeLimit {
  uint64_t timeout_ms = 0;
  uint64_t grace_ms = 2000;
};

}  // namespace taskcell::native
