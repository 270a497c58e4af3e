#pragma once

#include <functional>
#include <string>
#include <vector>

namespace taskcell::test {

// Runs `become`, which executes a program, in a child, and kills that program (SIGKILL) as it
// enters its call number `nth` (1, 2, ...) of the system calls in `numbers`, before the call is
// made (ptrace(2), as root). What it starts is left alone. Returns its exit status, or 128 + the
// signal that ended it: 137 where the call was reached.
int KillAtCall(const std::function<void()>& become, const std::vector<long>& numbers, int nth);

// A system call as it is entered, and the path it names (that behind a directory descriptor; a name
// for memfd_create), where it is one of those that do.
struct EnteredCall {
  long number = -1;
  std::string path;
};

// The same for a program with threads: it is killed at the first call, of any of them, for which
// `is_it` holds, which is asked of every call. To be called in a thread of its own, where the
// program's life is to be watched meanwhile.
int KillWhere(const std::function<void()>& become,
              const std::function<bool(const EnteredCall&)>& is_it);

}  // namespace taskcell::test
