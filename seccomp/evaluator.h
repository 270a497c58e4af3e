#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace taskcell::seccomp {

// What a filter answers to one call, and what it cost.
struct Evaluation {
  uint32_t action = 0;           // SECCOMP_RET_* with its data
  std::size_t instructions = 0;  // executed, the final return included
};

// Runs a seccomp program on `call` as the kernel would. Nothing when the program is one the kernel
// would refuse to load and the run meets the reason: an instruction outside seccomp's subset, a
// load outside struct seccomp_data, a jump or an end outside the program.
std::optional<Evaluation> Evaluate(std::span<const sock_filter> code, const seccomp_data& call);

}  // namespace taskcell::seccomp
