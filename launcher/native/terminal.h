#pragma once

namespace taskcell::native {

// The caller's terminal, lent to the job. A job has a process group of its own (else its kill(0)
// would reach the launcher), so the terminal must be told that this group is in the foreground now:
// otherwise its first read would stop it.
class Terminal {
 public:
  // Looks whether descriptor 0 is this process's terminal and this process is in the foreground of
  // it. A launcher in the background lends nothing, its job waits like any background job.
  Terminal();
  // Takes the terminal back.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool is_lent() const { return is_lent_; }

 private:
  bool is_lent_ = false;
};

}  // namespace taskcell::native
