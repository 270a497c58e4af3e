#pragma once

#include <functional>
#include <vector>

namespace taskcell::test {

// Runs `become`, which executes a program, in a child, and kills that program (SIGKILL) as it
// enters its call number `nth` (1, 2, ...) of the system calls in `numbers`, before the call is
// made (ptrace(2), as root). What it starts is left alone. Returns its exit status, or 128 + the
// signal that ended it: 137 where the call was reached.
int KillAtCall(const std::function<void()>& become, const std::vector<long>& numbers, int nth);

}  // namespace taskcell::test
