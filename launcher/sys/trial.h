#pragma once

#include <cstdint>

#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// Calls made to see them refused. Each answers 0 when the call succeeded (whatever it then did), or
// its errno.

// Any system call by its number, raw: the filter sees exactly these arguments.
int32_t TrySyscall(long number, uint64_t first = 0, uint64_t second = 0, uint64_t third = 0,
                   uint64_t fourth = 0, uint64_t fifth = 0, uint64_t sixth = 0);

// The same call, and what the kernel itself answers: 0 or more, or -errno.
int64_t RawSyscall(long number, uint64_t first = 0, uint64_t second = 0, uint64_t third = 0,
                   uint64_t fourth = 0, uint64_t fifth = 0, uint64_t sixth = 0);

// clone(2) with SIGCHLD and `flags`, as a fork: a child that comes into being exits at once and is
// reaped.
int32_t TryClone(uint64_t flags);

// open(2) of `path` with `flags`, mode 0600. What was opened is closed again.
int32_t TryOpen(const char* path, int flags);

// A pidfd of the calling process, or none where that cannot be had.
UniqueFd OwnPidfd();

// A pointer as the argument of a system call.
inline uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace taskcell::sys
