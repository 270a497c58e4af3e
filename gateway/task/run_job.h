#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "gateway/config/home.h"
#include "gateway/egress/broker.h"
#include "gateway/runtimes/runtime.h"
#include "gateway/task/verdict.h"
#include "launcher/base/result.h"
#include "launcher/cell/job.h"
#include "launcher/gate/gate_host.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// What one job's run is held to.
struct RunTerms {
  Runtime runtime = Runtime::kClaude;
  std::string account;  // its id, for a message; so are the next five and the time limit
  uint64_t budget_cents = 0;
  std::string executable;  // in the cell
  std::string root;        // what it lies in: "image `x`"
  uint64_t memory_bytes = 0;
  uint64_t pids = 0;
  bool credential_inside = false;
  uint64_t max_turns = 0;
  uint64_t timeout_ms = 0;  // of the whole task
  std::chrono::steady_clock::time_point deadline;
  int cancel_fd = -1;               // readable: cancel; -1: never
  const Home* export_to = nullptr;  // what the job leaves goes there; nullptr: nowhere
  std::string run_id;
};

// Hands the job over to a verified cell, relays it to its end, and collects what all four sides
// know before init may go: the gate, the program's stream, the broker (`way` is detached), the
// cell's cgroup. An Error means that the job was never handed over.
Result<Evidence> RunJob(gate::GateHost& gate, probe::RunningCell& cell, BrokerCell& way,
                        const cell::Job& job, const RunTerms& terms);

}  // namespace taskcell::gateway
