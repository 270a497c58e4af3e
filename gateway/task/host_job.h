#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "gateway/runtimes/runtime.h"
#include "gateway/task/verdict.h"
#include "launcher/base/result.h"
#include "launcher/cell/job.h"
#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {

// A job that runs on the host, and what ends it early.
struct HostRelay {
  std::string program;    // taskcell-host, absolute
  int directory_fd = -1;  // where the job runs
  gate::OutputSink& sink;
  uint64_t max_turns = 0;
  std::chrono::steady_clock::time_point deadline;
  int cancel_fd = -1;  // readable: cancel; -1: never
};

// Runs the job under taskcell-host, which kills all of it at the end, at the deadline, on cancel,
// and when this process dies, whatever session or parent a part of it has by then; `evidence` then
// tells its end. An Error (code transport_failed) means that the job was never handed over.
Status RelayOnHost(const HostRelay& relay, cell::Job job, Evidence& evidence);

// What a job on the host is held to.
struct HostTerms {
  Runtime runtime = Runtime::kClaude;
  std::string account;  // its id, for a message; empty: the program's own login
  uint64_t max_turns = 0;
  uint64_t timeout_ms = 0;  // of the whole task, for a message
  std::chrono::steady_clock::time_point deadline;
  int cancel_fd = -1;  // readable: cancel; -1: never
};

// Runs a runtime's job so, in the directory `directory_fd`.
Result<Evidence> RunHostJob(const std::string& program, int directory_fd, cell::Job job,
                            const HostTerms& terms);

}  // namespace taskcell::gateway
