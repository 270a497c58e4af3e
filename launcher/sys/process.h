#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// How a process ended: `signal` 0 means it exited with `status`.
struct ExitInfo {
  int status = 0;
  int signal = 0;
};

// Owns one child process by pidfd. The destructor kills and reaps it, so none outlives its owner.
class Child {
 public:
  Child() = default;
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { KillAndReap(); }

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  bool valid() const { return pid_ > 0; }

  // pidfd_send_signal(2), or kill(2) where that is missing or forbidden: the number is this child's
  // until it is reaped. ESRCH is an Error: the child has ended.
  Status Signal(int signal) const;

  // Waits until the child ended and reaps it; the object is empty afterwards. By its number where
  // waitid(2) does not take the pidfd.
  Result<ExitInfo> Wait();

 private:
  void KillAndReap();

  pid_t pid_ = 0;
  UniqueFd pidfd_;
};

// What CloneProcess makes: `in_child` is true in the new process, where `child` is empty.
struct Cloned {
  bool in_child = false;
  Child child;
};

// clone3(2) as fork does it, with the CLONE_NEW* `flags` and, where `cgroup_fd` >= 0, born in that
// cgroup (CLONE_INTO_CGROUP). Where the kernel or a filter has no clone3 (ENOSYS, EPERM), clone(2)
// with the same namespaces; an asked-for cgroup is then an Error, since the child would be born
// outside, as it is where the kernel has clone3 without CLONE_INTO_CGROUP (E2BIG, EINVAL).
// CRITICAL: the caller must have one thread (AssertSingleThread).
Result<Cloned> CloneProcess(uint64_t flags, int cgroup_fd = -1);

// Refuses (kInternal) when this process has more than one thread.
Status AssertSingleThread();

// unshare(2).
Status Unshare(int flags);

// close_range(2) for `first` .. `last`, both included.
Status CloseRange(unsigned first, unsigned last);

// Makes every descriptor from `first` on close on exec.
Status CloseOnExecFrom(unsigned first);

// Opens /dev/null as each of 0, 1 and 2 that is closed.
Status FillStandardStreams();

// Puts `fd` at the number `number` (dup3), kept across exec.
Status PlaceDescriptor(int fd, int number);

// execveat(2) of the file `fd` itself; returns only to tell why it did not. `argv` and
// `environment` are without the final null.
Error ExecuteDescriptor(int fd, const std::vector<std::string>& argv,
                        const std::vector<std::string>& environment);

// execve(2); returns only to tell why it did not. Without the final nulls.
Error Execute(const std::string& path, const std::vector<std::string>& argv,
              const std::vector<std::string>& environment);

struct ProgramResult {
  ExitInfo exit;
  std::string output;  // what it wrote to stdout: at most a pipe's 64 KiB, or it waits for ever
  std::string errors;  // what it wrote to stderr, at most 4 KiB
};
// Runs `argv` (argv[0] is an absolute path) with an empty environment and `input` (-1: /dev/null)
// for stdin, and waits at most `timeout_ms`; past it the program is killed and that is the Error.
Result<ProgramResult> RunProgram(const std::vector<std::string>& argv, int timeout_ms,
                                 int input = -1);

// Leaves this process at once without running destructors or exit handlers: the only way out of a
// child made by CloneProcess.
[[noreturn]] void ExitNow(int status);

}  // namespace taskcell::sys
