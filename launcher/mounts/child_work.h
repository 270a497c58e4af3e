#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/process.h"

namespace taskcell::mounts {

// What work in a child came to: bytes, and descriptors to go with them.
struct WorkResult {
  std::string bytes;
  std::vector<UniqueFd> passed;
};

struct WorkTerms {
  int limit_ms = 0;
  int stop_fd = -1;                // readable, or its other end gone: no longer wanted; -1: never
  std::span<const char> progress;  // in shared memory: what the work is at, up to a NUL
};

// How long a child that was killed may take to go.
inline constexpr int kLastBreathMs = 1000;

// Does `work` in a child process that dies with this one and has no standard streams: for work that
// may hang in the kernel, where no signal but SIGKILL, or none at all, gets through (a read of a
// file that somebody holds in the middle of a write, or of a file system that does not answer).
// After `limit_ms` the child is killed, and that is an Error with ETIMEDOUT that says what the work
// was at; when it is no longer wanted, one with the code stopped. A child that is still in the
// kernel kLastBreathMs later is left to it: `is_gone` is false then, and true in every other case.
// CRITICAL: the caller must have one thread (sys::CloneProcess).
Result<WorkResult> DoInChild(const std::function<Result<WorkResult>()>& work,
                             const WorkTerms& terms, bool& is_gone);

// SIGKILL, and `breath_ms` to go; false where the child is still in the kernel then: it is left to
// it, and reaped by a later call, or by whoever gets it when this process ends.
bool KillInTime(sys::Child child, int breath_ms = kLastBreathMs);

// What work is called that took longer than `limit_ms`; `progress` as above.
Error Overdue(int limit_ms, std::span<const char> progress = {});

// Keeps other processes of this uid from tracing this one, which holds what it is to read and what
// it reads it for (CVE-2026-41163): not dumpable, but where the kernel then has no way left to tell
// it the mount of a file (before Linux 5.8).
Status KeepOthersOut();

// An Error or a WorkResult as one message and back, over a SOCK_SEQPACKET between two processes
// that trust each other.
Status SendWork(int socket, const Result<WorkResult>& result);
Result<WorkResult> ReceiveWork(int socket);

}  // namespace taskcell::mounts
