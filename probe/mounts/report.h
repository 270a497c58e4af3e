#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/mounts/entry.h"
#include "probe/mounts/findings.h"

namespace taskcell::probe::audit {

// What came of a whole directory.
enum class Standing : uint8_t {
  kSafe,     // notes at most
  kUnsafe,   // an error or a warning
  kUnknown,  // neither, but not all of it could be judged
};
std::string_view Name(Standing standing);  // "safe", "unsafe", "unknown"
// What findings so many of each code make of it. Pure.
Standing StandingOf(const std::array<uint64_t, kCodes>& counts, Policy policy);

// One of the allowed entries of an agent directory.
struct EntryReport {
  std::string name;
  mounts::Verdict verdict = mounts::Verdict::kAbsent;
  std::string reason;               // as in the contract: "symlink", ...; "" where it is not,
                                    // or skipped as over_limit
  std::string note;                 // what was found and what was expected
  std::vector<Finding> notes = {};  // about what is in it
};

struct Report {
  std::string directory;  // as it was given
  std::string resolved;   // without links on the way
  Policy policy = Policy::kStrict;
  std::optional<uid_t> owner = {};  // who was to own everything; none where nothing was looked at
  Standing standing = Standing::kSafe;
  // Of the path and the directory; with kAgent what is in an entry stands there.
  std::vector<Finding> findings;
  std::vector<EntryReport> entries;  // kAgent only: one for each of mounts::kAgentEntries
  std::array<uint64_t, kCodes> counts = {};
  uint64_t looked_at = 0;  // entries
  uint64_t left_out = 0;   // findings that are counted but not kept
  bool abandoned = false;  // see WalkResult
  // Where nothing of it could be looked at: "unreadable" or "wrong_kind", and why.
  std::string reason = {};
  std::string failure = {};
};

// True where something was not judged, whatever was found in the rest. Pure.
bool IsIncomplete(const Report& report);

// True where all findings worse than a note were kept in `findings`. Pure.
bool KnowsTheWorst(const Report& report);

// What there is to report of a directory whose audit ended with that error. Pure.
Report FailedReport(std::string directory, Policy policy, const Error& error);

}  // namespace taskcell::probe::audit
