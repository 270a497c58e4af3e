#pragma once

#include <linux/filter.h>

#include <cstdint>

namespace taskcell::seccomp {

enum class Architecture : uint8_t { kX86_64, kAarch64 };

// A classic BPF program over struct seccomp_data, as seccomp(2) takes it. Points into static
// storage.
struct Program {
  const sock_filter* code;
  unsigned short length;  // instructions
};

// Returns the compiled form of seccomp/default.json: which system calls a job in a cell may make.
// Calls of another architecture (i386, x32, 32-bit ARM) kill the process. The tables in
// tests/data/seccomp say call by call what it answers.
Program DefaultFilter(Architecture architecture);

// The same for the machine this was built for.
Program DefaultFilter();

}  // namespace taskcell::seccomp
