#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace taskcell::test {

struct CallCount {
  int status = -1;     // exit status of the child, or 128 + n when signal n ended it
  uint64_t calls = 0;  // from its exec on
  // The same of each program, under the name that the kernel has for it, by the call's number.
  std::map<std::string, std::map<uint64_t, uint64_t>> by_program;
  unsigned processes = 0;
  unsigned programs = 0;  // executed
};

// Runs `become`, which executes a program, in a child, and counts the system calls that program and
// all it starts enter (ptrace(2), as root). Returns when every one of them has ended. `at_call` is
// told of each, before it is made.
CallCount CountCalls(const std::function<void()>& become,
                     const std::function<void(pid_t, uint64_t number)>& at_call = {});

}  // namespace taskcell::test
