#pragma once

#include <cstdint>
#include <span>
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
// No write(2) into a file is taken to last longer, where no lease tells of writers.
inline constexpr int64_t kLongestWriteSeconds = 10;
// The bounds as values, so that a test can lower them.
struct SnapshotBounds {
  uint64_t bytes = kMaxSnapshotBytes;
  std::size_t entries = kMaxSnapshotEntries;
  int depth = kMaxSnapshotDepth;
  int64_t longest_write_s = kLongestWriteSeconds;
  // Memory where what is being looked at is noted for whoever waits, with a NUL behind it.
  std::span<char> progress = {};
};
// A file that changes while it is copied is tried this often before it is left out.
inline constexpr int kCopyTries = 3;

// What happens to a SKILLS or wiki with something unsafe in it.
enum class Subtree : uint8_t {
  kPrune,  // what is unsafe is left out
  kSkip,   // the whole directory is left out
};

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
  // False when something was left out for a reason that may be gone next time, though the
  // directory is the same, or a file was open for writing while it was copied.
  bool repeatable = true;
  // False when a file was copied without a read lease: a write that was under way, which changes
  // the times of a file only when it begins, may have been copied in part.
  bool all_leased = true;
};

// Copies the safe entries of an agent directory into the empty directory `target_dir_fd` (mode
// 0700, the caller's own; 0555 when done): plain files (0444) and directories (0555), and inside
// SKILLS and wiki also symbolic links that stay within the snapshot and files all of whose names
// are in SKILLS and wiki. Everything else is left out with a warning. An entry must be listed under
// the very bytes of its name (some file systems find SOUL.md by soul.md). Every file is read
// through the very descriptor that was judged, and nobody can write it meanwhile where the kernel
// grants a lease on it (sys::ReadLease); one that changes all the same is copied again or left out
// as kRace. What was checked is therefore what a cell sees, whatever happens to the agent
// directory later. A file at the top that passes a bound is an Error coded agent_dir_unmountable; a
// SKILLS or wiki that does is left out whole, with a warning. After an Error the target holds a
// part of the copy.
Result<Snapshot> SnapshotAgentDirectory(int agent_dir_fd, int target_dir_fd,
                                        Subtree subtree = Subtree::kPrune,
                                        const SnapshotBounds& bounds = {});

}  // namespace taskcell::mounts
