#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/ledger/ledger.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

inline constexpr std::size_t kMaxFaultsTold = 50;

// One thing that is not as it was written.
struct ChainFault {
  int64_t line = 0;  // of the file, from 1
  std::string text;
};

// What a home's chain of receipts is worth.
struct ChainReport {
  int64_t receipts = 0;  // that are in the file and what they were
  int64_t removed = 0;   // the number of the last one that was removed for its age; 0: none
  int64_t last = 0;      // the number of the last one, and its digest: to be kept elsewhere
  std::string last_digest;
  std::vector<ChainFault> faults;  // the first kMaxFaultsTold, in the order of their lines
  int64_t fault_count = 0;
  std::vector<std::string> notes;  // what is no fault
};

// Compares every line of <home>/receipts.jsonl with the next one's digest of it, the last with the
// ledger's, and each sandbox/receipts/<run id>.json that is there with its line: an edit, a cut
// anywhere, an insertion and another order each name the line. Changes nothing. The Error is for
// what cannot be read.
Result<ChainReport> VerifyReceipts(int home_fd, const std::string& home_path);

// The same with the lock held (LockReceipts), against this state of the ledger.
Result<ChainReport> VerifyLocked(int home_fd, const ChainState& state);

}  // namespace taskcell::gateway
