#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cell/cell_plan.h"
#include "launcher/native/supervisor.h"

namespace taskcell::native {

// Whether a limit of a cell held in which taskcell-breaker went for it.
struct LimitCheck {
  enum class Verdict : uint8_t { kHeld, kNot, kUnknown };
  const char* name;
  Verdict verdict;
  std::string text;  // what was found, or what to do
};

// Judges by what the kernel counted. Pure.
std::vector<LimitCheck> CheckLimits(const cell::Limits& limits, const Outcome& outcome);

}  // namespace taskcell::native
