#pragma once

#include <cstdint>
#include <optional>

#include "launcher/base/result.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/native/cell.h"
#include "launcher/native/gate_client.h"
#include "launcher/native/streams.h"
#include "launcher/native/time_limit.h"

namespace taskcell::native {

// How a job ended, and what the kernel counted.
struct Outcome {
  bool timed_out = false;
  bool output_exceeded = false;
  bool killed = false;                   // from outside, before it ended
  std::optional<cell::Refusal> refusal;  // the job did not start
  cell::JobExit exit;                    // else
  cgroup::Events events;
  uint64_t wall_us = 0;
};

// What the attestation of a cell that is as planned says beyond that.
struct Verified {
  std::vector<std::string> left_open;  // cell::CallsLeftOpen
  int32_t landlock_abi = 0;            // 0: the cell is without Landlock
};
// Compares what the cell is with the plan; any difference is an Error, and a differing limit one
// with the code "resource_limits_unenforced".
Result<Verified> VerifyCell(const cell::CellPlan& plan, NativeCell& cell, GateClient& gate);

// What else there is to see to while a job runs.
struct Watch {
  int signals;  // a signalfd of the ones to pass on, and of SIGWINCH
  TimeLimit limit;
  Streams& streams;
  bool oom_group = false;  // init is killed with the program
};

// Hands the job over and stays with it: passes signals on, carries its streams, ends it in time or
// when it has said too much, reads the evidence before the cell goes. When it returns no process of
// the cell is left.
Result<Outcome> Supervise(NativeCell& cell, GateClient& gate, const cell::Job& job,
                          const Watch& watch);

// The exit status taskcell-launch documents for an outcome.
int ExitStatus(const Outcome& outcome);

inline constexpr int kExitOutput = 123;
inline constexpr int kExitTimedOut = 124;
inline constexpr int kExitFailed = 125;
inline constexpr int kExitCannotExecute = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignalBase = 128;

}  // namespace taskcell::native
