#include "tests/support/kill_at_call.h"

#include <linux/limits.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace taskcell::test {
namespace {

constexpr int kSyscallStop = SIGTRAP | 0x80;
// Threads are traced as well; what the program starts is not.
constexpr long kOptions =
    PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;

void Must(bool done) {
  if (!done) std::abort();
}

bool IsExec(int status) { return status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8)); }

// A stopped child that is traced and about to go on.
pid_t StartTraced(const std::function<void()>& become) {
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
  return child;
}

int StatusOf(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Which argument of a call is a path; -1: none is.
int PathArgument(long number) {
  switch (number) {
    case SYS_openat:
    case SYS_openat2:
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_renameat:
    case SYS_renameat2:
      return 1;
    case SYS_memfd_create:
      return 0;
    default:
      return -1;
  }
}

std::string TextAt(pid_t pid, uint64_t address) {
  std::string text;
  while (text.size() < PATH_MAX) {
    const long word = ::ptrace(PTRACE_PEEKDATA, pid, address + text.size(), 0);
    std::array<char, sizeof word> bytes;
    std::memcpy(bytes.data(), &word, sizeof word);
    const std::size_t end = std::string_view(bytes.data(), bytes.size()).find('\0');
    text.append(bytes.data(), std::min(end, bytes.size()));
    if (end != std::string_view::npos) break;
  }
  return text;
}

EnteredCall EnteredCallOf(pid_t pid) {
  struct __ptrace_syscall_info info = {};
  if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0 ||
      info.op != PTRACE_SYSCALL_INFO_ENTRY)
    return {};
  EnteredCall call{static_cast<long>(info.entry.nr), ""};
  const int argument = PathArgument(call.number);
  if (argument >= 0) call.path = TextAt(pid, info.entry.args[argument]);
  return call;
}

}  // namespace

int KillAtCall(const std::function<void()>& become, const std::vector<long>& numbers, int nth) {
  int seen = 0;
  return KillWhere(become, [&](const EnteredCall& call) {
    return std::find(numbers.begin(), numbers.end(), call.number) != numbers.end() && ++seen == nth;
  });
}

int KillWhere(const std::function<void()>& become,
              const std::function<bool(const EnteredCall&)>& is_it) {
  const pid_t program = StartTraced(become);
  bool executed = false;
  bool killed = false;
  while (true) {
    int status = 0;
    // Children of this thread alone: others may wait for theirs.
    const pid_t stopped = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
    Must(stopped > 0);
    if (!WIFSTOPPED(status)) {
      if (stopped == program) return StatusOf(status);
      continue;
    }
    executed = executed || IsExec(status);
    const bool at_call = executed && !killed && WSTOPSIG(status) == kSyscallStop;
    if (at_call) {
      const EnteredCall call = EnteredCallOf(stopped);
      killed = call.number >= 0 && is_it(call);
      if (killed) Must(::kill(program, SIGKILL) == 0);
    }
    const bool is_signal = status >> 16 == 0 && WSTOPSIG(status) != kSyscallStop;
    // ignoring: it may be dead, then the next wait says so
    (void)::ptrace(PTRACE_SYSCALL, stopped, 0, is_signal ? WSTOPSIG(status) : 0);
  }
}

}  // namespace taskcell::test
