#pragma once

#include <sys/types.h>

#include <cstdint>

#include "launcher/base/result.h"
#include "launcher/cell/job.h"
#include "launcher/init/gate.h"
#include "launcher/init/relay.h"
#include "launcher/init/witness.h"
#include "launcher/sys/self.h"

namespace taskcell::init {

// How long killed processes may take to be gone before init reports without them.
inline constexpr int kEndingTimeoutMs = 5000;

// A job's first process that has been started, as whoever supervises it sees it.
struct RunningJob {
  pid_t pid = 0;
  Relay& relay;
  uint64_t started_us = 0;  // sys::MonotonicUs
  uint64_t timeout_ms = 0;  // 0: none
  bool foreground = false;
  sys::Usage usage_before;  // of this process's children, before the job
  // Kills every process of the job that it finds. Called again until none is left to be reaped.
  Status (*kill_all)() = nullptr;
};

// Says kStarted and relays; when the job's first process has ended kills whatever else is left,
// reaps it and says kExit. Ends the job by force at its time limit or on kCancel; delivers kSignal
// to its process group. Returns false where what was killed did not go away in time. An Error as
// RunJob's: the caller kills what is left.
Result<bool> SuperviseJob(const RunningJob& job, Gate& gate);

// Runs the one job of this cell: makes the witness that job and supervises it. A job
// that cannot start is kRefused with the stage, and no failure here. An Error means that the gate
// is closed, or the other side broke the protocol or said kDone too early: the job is dead by then.
// Returns as SuperviseJob does; true for a job that never started.
Result<bool> RunJob(cell::Job job, Witness witness, Gate& gate);

}  // namespace taskcell::init
