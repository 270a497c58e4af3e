#pragma once

#include <signal.h>

#include <cstdint>
#include <initializer_list>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// sigprocmask(2): blocks `signals` and returns the mask before.
Result<sigset_t> BlockSignals(std::initializer_list<int> signals);

// sigprocmask(2): sets the whole mask.
Status RestoreSignals(const sigset_t& mask);

// signalfd(2) for blocked `signals`, CLOEXEC and nonblocking.
Result<UniqueFd> MakeSignalFd(std::initializer_list<int> signals);

// Takes one pending signal from a signalfd; 0 when none is pending.
Result<int> TakeSignal(int signal_fd);

// CLOCK_MONOTONIC in microseconds.
uint64_t MonotonicUs();
// CLOCK_REALTIME in milliseconds since 1970.
int64_t UnixMs();

}  // namespace taskcell::sys
