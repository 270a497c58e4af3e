#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "gateway/runtimes/runtime.h"
#include "gateway/task/verdict.h"
#include "launcher/base/result.h"
#include "launcher/cell/job.h"

namespace taskcell::gateway {

// What a job on the host is held to.
struct HostTerms {
  Runtime runtime = Runtime::kClaude;
  std::string account;  // its id, for a message; empty: the program's own login
  uint64_t max_turns = 0;
  uint64_t timeout_ms = 0;  // of the whole task, for a message
  std::chrono::steady_clock::time_point deadline;
  int cancel_fd = -1;  // readable: cancel; -1: never
};

// Runs the job in the directory `directory_fd` under taskcell-host at `program` (absolute), which
// kills all of it at the end, at the deadline, on cancel, and when this process dies, whatever
// session or parent a part of it has by then. An Error (code transport_failed) means that the job
// was never handed over.
Result<Evidence> RunHostJob(const std::string& program, int directory_fd, cell::Job job,
                            const HostTerms& terms);

}  // namespace taskcell::gateway
