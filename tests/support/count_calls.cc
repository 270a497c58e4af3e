#include "tests/support/count_calls.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "launcher/sys/file.h"

namespace taskcell::test {
namespace {

constexpr int kSyscallStop = SIGTRAP | 0x80;
constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                          PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;

void Must(bool done) {
  if (!done) std::abort();
}

// The number of the call that it is about to make; nothing where it comes from one.
std::optional<uint64_t> EntersCall(pid_t pid) {
  struct __ptrace_syscall_info info = {};
  if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0 ||
      info.op != PTRACE_SYSCALL_INFO_ENTRY)
    return std::nullopt;
  return info.entry.nr;
}

std::string ProgramOf(pid_t pid) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return name;
}

// The signal to go on with after a stop: the one being delivered, or none.
int SignalOf(int status) {
  int signal = WSTOPSIG(status);
  bool event = status >> 16 != 0;
  return event || signal == kSyscallStop ? 0 : signal;
}

}  // namespace

CallCount CountCalls(const std::function<void()>& become,
                     const std::function<void(pid_t, uint64_t)>& at_call) {
  sys::Pipe go = sys::MakePipe().value();
  pid_t child = ::fork();
  Must(child >= 0);
  if (child == 0) {
    char byte = 0;
    if (::read(go.read_end.get(), &byte, 1) == 1) become();
    ::_exit(127);
  }
  int status = 0;
  Must(::ptrace(PTRACE_SEIZE, child, 0, kOptions) == 0);
  Must(::ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0);
  Must(::waitpid(child, &status, __WALL) == child && WIFSTOPPED(status));
  Must(::ptrace(PTRACE_SYSCALL, child, 0, 0) == 0);
  Must(::write(go.write_end.get(), "g", 1) == 1);
  CallCount count;
  std::map<pid_t, std::string> programs;
  bool executed = false;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, __WALL)) > 0;) {
    if (!WIFSTOPPED(status)) {
      if (pid == child)
        count.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      programs.erase(pid);
      continue;
    }
    const bool executes = status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8));
    executed = executed || executes;
    if (executes) ++count.programs;
    const auto [program, is_new] = programs.try_emplace(pid);
    if (is_new) ++count.processes;
    if (is_new || executes) program->second = ProgramOf(pid);
    std::optional<uint64_t> call;
    if (executed && WSTOPSIG(status) == kSyscallStop) call = EntersCall(pid);
    if (call) {
      ++count.calls;
      ++count.by_program[program->second][*call];
      if (at_call) at_call(pid, *call);
    }
    // ignoring: it may have been killed meanwhile, then the next wait says so
    (void)::ptrace(PTRACE_SYSCALL, pid, 0, SignalOf(status));
  }
  return count;
}

}  // namespace taskcell::test
