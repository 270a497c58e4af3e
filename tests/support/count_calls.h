#pragma once

#include <cstdint>
#include <functional>

namespace taskcell::test {

struct CallCount {
  int status = -1;     // exit status of the child, or 128 + n when signal n ended it
  uint64_t calls = 0;  // from its exec on
};

// Runs `become`, which executes a program, in a child, and counts the system calls that program and
// all it starts enter (ptrace(2), as root). Returns when every one of them has ended.
CallCount CountCalls(const std::function<void()>& become);

}  // namespace taskcell::test
