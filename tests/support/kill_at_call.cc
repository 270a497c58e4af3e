#include "tests/support/kill_at_call.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace taskcell::test {
namespace {

constexpr int kSyscallStop = SIGTRAP | 0x80;
constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;

void Must(bool done) {
  if (!done) std::abort();
}

// The number of the call that is entered, or -1 at any other stop.
long EnteredCall(pid_t pid) {
  struct __ptrace_syscall_info info = {};
  bool entered = ::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0 &&
                 info.op == PTRACE_SYSCALL_INFO_ENTRY;
  return entered ? static_cast<long>(info.entry.nr) : -1;
}

bool IsExec(int status) { return status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8)); }

}  // namespace

int KillAtCall(const std::function<void()>& become, const std::vector<long>& numbers, int nth) {
  pid_t child = ::fork();
  Must(child >= 0);
  if (child == 0) {
    Must(::raise(SIGSTOP) == 0);
    become();
    ::_exit(127);
  }
  int status = 0;
  Must(::waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
  Must(::ptrace(PTRACE_SEIZE, child, 0, kOptions) == 0);
  Must(::kill(child, SIGCONT) == 0);
  bool executed = false;
  int seen = 0;
  while (::waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) {
    executed = executed || IsExec(status);
    bool at_call = executed && WSTOPSIG(status) == kSyscallStop;
    long number = at_call ? EnteredCall(child) : -1;
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end() && ++seen == nth)
      Must(::kill(child, SIGKILL) == 0);
    bool is_signal = status >> 16 == 0 && WSTOPSIG(status) != kSyscallStop;
    // ignoring: it may be dead, then the next wait says so
    (void)::ptrace(PTRACE_SYSCALL, child, 0, is_signal ? WSTOPSIG(status) : 0);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace taskcell::test
