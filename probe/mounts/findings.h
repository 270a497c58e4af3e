#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "probe/mounts/codes.h"

namespace taskcell::probe::audit {

struct Finding {
  Severity severity = Severity::kNote;
  Code code = Code::kChanged;
  std::string path;    // below the directory audited, as the kernel has it; "." for itself
  std::string detail;  // what was found: one sentence without a full stop, fit to print
};

// How many findings are kept of one directory, and how many bytes of them; the rest is counted. The
// worst are kept, and among those the first by path, so that two audits of one tree keep the same.
inline constexpr std::size_t kMaxFindings = 3000;
inline constexpr std::size_t kMaxFindingBytes = 512U << 10U;

// Collects findings from several threads.
class FindingList {
 public:
  explicit FindingList(Policy policy) : policy_(policy) {}

  void Add(Code code, std::string path, std::string detail);
  // Counts findings that are not kept for want of room.
  void Count(Code code, uint64_t more);

  // The findings kept so far, sorted. Afterwards the list is empty, the counts stay.
  std::vector<Finding> Take();
  std::array<uint64_t, kCodes> counts() const;

 private:
  static bool IsBefore(const Finding& a, const Finding& b);

  const Policy policy_;
  mutable std::mutex mutex_;
  std::vector<Finding> heap_;  // the one to be dropped next in front
  std::size_t bytes_ = 0;
  std::array<uint64_t, kCodes> counts_ = {};
};

}  // namespace taskcell::probe::audit
