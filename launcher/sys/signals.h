#pragma once

#include <signal.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// True when the process ignores `signal`, one that can be ignored.
bool IsIgnored(int signal);

struct CaughtSignals {
  UniqueFd fd;                   // signalfd(2), CLOEXEC and nonblocking
  std::vector<int32_t> ignored;  // the ones asked for that the process ignores
  sigset_t mask_before = {};
};
// Blocks `signals` and makes a signalfd for them. One that the process ignores is left alone: a
// blocked one would arrive nevertheless, and who started this process (nohup(1), a shell's
// background) wants it to have no effect.
Result<CaughtSignals> CatchSignals(std::initializer_list<int32_t> signals);

// sigprocmask(2): sets the whole mask.
Status RestoreSignals(const sigset_t& mask);

// While it lives, the mask is `mask`: what came meanwhile takes effect at once.
class WithSignalMask {
 public:
  explicit WithSignalMask(const sigset_t& mask);
  ~WithSignalMask();
  WithSignalMask(const WithSignalMask&) = delete;
  WithSignalMask& operator=(const WithSignalMask&) = delete;

 private:
  sigset_t before_ = {};
};

// Sends SIGALRM to this process in `ms` milliseconds (setitimer(2)), 0: not any more. Not handed on
// to a child. The process ignores it no longer.
Status SetAlarm(uint64_t ms);

// Takes one pending signal from a signalfd; 0 when none is pending.
Result<int> TakeSignal(int signal_fd);

// CLOCK_MONOTONIC in microseconds.
uint64_t MonotonicUs();
// CLOCK_REALTIME in milliseconds since 1970.
int64_t UnixMs();

}  // namespace taskcell::sys
