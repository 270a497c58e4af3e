#pragma once

#include <chrono>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/mounts/stored_snapshot.h"
#include "launcher/sys/process.h"

namespace taskcell::mounts {

// Snapshots in a time limit that holds whatever the agent directory's file system does: the copying
// is done in a child process (DoInChild). Errors beyond those of the plain functions: ETIMEDOUT
// coded agent_dir_unmountable; stopped, as soon as `stop_fd` (-1: never) is readable or its other
// end is gone; workspace_failed where the process between is at fault. What a child that cannot be
// killed leaves behind goes with the next snapshot.

// How long one snapshot may take.
inline constexpr std::chrono::milliseconds kSnapshotTimeLimit{30'000};

struct SnapshotTerms {
  std::chrono::milliseconds limit = kSnapshotTimeLimit;
  int stop_fd = -1;
};

// SnapshotAgentDirectory, for a process with one thread.
Result<Snapshot> SnapshotInTime(int agent_dir_fd, int target_dir_fd, const SnapshotTerms& terms);

// StoredSnapshot::Take, for a process with threads: by the program at `launcher` (an absolute path
// of taskcell-launch) as the process between. It is started when first asked for one, and stays for
// the next. Serves one thread at a time.
class SnapshotTaker {
 public:
  explicit SnapshotTaker(std::string launcher) : launcher_(std::move(launcher)) {}

  Result<StoredSnapshot> Take(const SnapshotStore& store, int agent_dir_fd, Subtree subtree,
                              const SnapshotTerms& terms);

 private:
  Status Start();
  Error Gone(Error error);

  const std::string launcher_;
  sys::Child child_;
  UniqueFd socket_;
};

// The process between: answers requests on `socket` one after the other. Ends the work, and what it
// has made so far, when the other end of `socket` is gone, and then itself.
Status ServeSnapshots(int socket);

}  // namespace taskcell::mounts
