#pragma once

#include <atomic>
#include <thread>

#include "launcher/base/unique_fd.h"

namespace taskcell::test {

// A kernel that lets a user namespace mount the processes part of proc (subset=pid) and no whole
// one, as one does that looks for what covers the caller's own /proc only where a whole one is
// asked for. Needs root, to read which file system a call is about, and seccomp's notifications
// (Linux 5.5).
class WholeProcRefused {
 public:
  WholeProcRefused();
  // Waits until all that the filter was put on have ended.
  ~WholeProcRefused();
  WholeProcRefused(const WholeProcRefused&) = delete;
  WholeProcRefused& operator=(const WholeProcRefused&) = delete;

  // Puts it on this process and all it starts, with no_new_privs; for a forked child, once. False
  // when the kernel refuses.
  bool Install() const;
  // How often a whole one was refused with EPERM.
  int refused() const { return refused_; }

 private:
  void Answer();

  UniqueFd ours_;
  UniqueFd childs_;  // by which the child hands over the descriptor of the notifications
  std::atomic<int> refused_ = 0;
  std::thread thread_;
};

}  // namespace taskcell::test
