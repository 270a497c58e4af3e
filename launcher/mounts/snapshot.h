#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/mounts/entry.h"

namespace taskcell::mounts {

// Bounds of one snapshot, all entries of an agent directory together. The top directories SKILLS
// and wiki are level 1.
inline constexpr uint64_t kMaxSnapshotBytes = 64U << 20U;
inline constexpr std::size_t kMaxSnapshotEntries = 20000;
inline constexpr int kMaxSnapshotDepth = 32;
// The bounds as values, so that a test can lower them.
struct SnapshotBounds {
  uint64_t bytes = kMaxSnapshotBytes;
  std::size_t entries = kMaxSnapshotEntries;
  int depth = kMaxSnapshotDepth;
};
// A file that changes while it is copied is tried this often before it is left out.
inline constexpr int kCopyTries = 3;

// What became of one allowed entry.
struct SnapshotEntry {
  std::string name;
  Verdict verdict = Verdict::kAbsent;
  Reason reason = Reason::kNone;
  std::string note;
};

struct Snapshot {
  std::vector<SnapshotEntry> entries;  // one for each of kAgentEntries, in that order
  std::vector<std::string> warnings;   // one line for each thing left out, printable
  uint64_t bytes = 0;
  std::size_t copied = 0;  // files and directories
};

// Copies the safe entries of an agent directory into the empty directory `target_dir_fd` (mode
// 0700, the caller's own; 0555 when done): plain files (0444) and directories (0555) only. Links,
// hard-linked files, special files and mounts are left out with a warning, at the top and inside
// SKILLS and wiki alike. Every file is read through the very descriptor that was judged; one that
// changes meanwhile is copied again or left out as kRace. What was checked is therefore what a cell
// sees, whatever happens to the agent directory later. A file at the top that passes a bound is an
// Error coded agent_dir_unmountable; a SKILLS or wiki that does is left out whole, with a warning.
// After an Error the target holds a part of the copy.
Result<Snapshot> SnapshotAgentDirectory(int agent_dir_fd, int target_dir_fd,
                                        const SnapshotBounds& bounds = {});

}  // namespace taskcell::mounts
