#pragma once

#include "launcher/base/result.h"
#include "launcher/cell/job.h"
#include "launcher/init/gate.h"
#include "launcher/init/witness.h"

namespace taskcell::init {

// How long killed processes may take to be gone before init reports without them.
inline constexpr int kEndingTimeoutMs = 5000;

// Runs the one job of this cell: makes the witness that job, says kStarted, relays, and when its
// first process has ended kills whatever else is left, reaps it and says kExit. Ends the job by
// force at its time limit or on kCancel; delivers kSignal to its process group. A job that cannot
// start is kRefused with the stage, and no failure here. An Error means that the gate is closed, or
// the other side broke the protocol or said kDone too early: the job is dead by then.
Status RunJob(cell::Job job, Witness witness, Gate& gate);

}  // namespace taskcell::init
