#pragma once

#include <cstdint>
#include <string>

#include "launcher/sys/trial.h"
#include "probe/attack/payload.h"

namespace taskcell::attack {

// One argument of a system call.
inline uint64_t Argument(uint64_t value) { return value; }
inline uint64_t Argument(uint32_t value) { return value; }
inline uint64_t Argument(int64_t value) { return static_cast<uint64_t>(value); }
inline uint64_t Argument(int32_t value) { return static_cast<uint64_t>(int64_t{value}); }
inline uint64_t Argument(const void* pointer) { return sys::Address(pointer); }

// A system call by its number, past the C library: what the kernel answers, or -errno.
template <typename... Arguments>
int64_t Call(long number, Arguments... arguments) {
  return sys::RawSyscall(number, Argument(arguments)...);
}

// The outcome of a call.
inline Attempted Of(int64_t answer, std::string detail = {}) {
  return {answer < 0 ? static_cast<int32_t>(-answer) : 0, std::move(detail)};
}

// A payload that is one call with numbers for its arguments.
template <long kNumber, uint64_t... kArguments>
Attempted Make(const Targets& /*targets*/) {
  return Of(Call(kNumber, kArguments...));
}

// openat(2), CLOEXEC, with `flags`, mode 0600: the descriptor or -errno.
int64_t OpenFile(const std::string& path, int flags);

// Opens `path` with `flags` and closes it again.
Attempted TryOpening(const std::string& path, int flags);

// Reads a byte of `path`: got through where there is one, kCovered where it is empty.
Attempted TryReading(const std::string& path);

}  // namespace taskcell::attack
