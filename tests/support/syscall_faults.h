#pragma once

#include <cstdint>
#include <vector>

namespace taskcell::test {

// For `err`: whoever makes the call is killed (SIGSYS).
inline constexpr int kKills = -1;

// A system call that answers `err` instead of being made; with `argument` >= 0 only when the low 32
// bits of that argument equal `value`.
struct SyscallFault {
  int number;
  int err;
  int argument = -1;
  uint32_t value = 0;
};

// Installs the faults on this process and all it starts, with no_new_privs unless it is root: an
// older or a stricter kernel. False when the kernel refuses.
bool InstallFaults(const std::vector<SyscallFault>& faults);

}  // namespace taskcell::test
