#pragma once

#include <chrono>
#include <cstdint>

#include "gateway/egress/broker.h"
#include "gateway/task/verdict.h"
#include "launcher/base/result.h"
#include "launcher/cell/job.h"
#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {

// A job, the gate of what is to run it, and what ends it early.
struct Relay {
  gate::GateHost& gate;
  const BrokerCell* broker;  // counts its steps; nullptr: nobody does
  const cell::Job& job;
  gate::OutputSink& sink;  // gets what it says
  uint64_t max_turns = 0;
  std::chrono::steady_clock::time_point deadline;
  int cancel_fd = -1;  // readable: cancel; -1: never
};

// Hands the job over and relays it to its end, which `evidence` then tells. An Error means that it
// was never handed over.
Status RelayJob(const Relay& relay, Evidence& evidence);

}  // namespace taskcell::gateway
