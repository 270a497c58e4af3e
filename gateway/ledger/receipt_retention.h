#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gateway/ledger/ledger.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Which receipts may go: the oldest, as long as one of both holds.
struct ReceiptsBound {
  std::string before;             // RFC 3339 as Rfc3339 writes it: older than that; empty: none
  std::optional<uint64_t> bytes;  // the file is larger
};

// Removes the oldest receipts, with their files below sandbox/receipts, and how many they were. In
// their place the file begins with a line that stands for them, and the ledger knows up to which
// they went: the rest can be verified as before, and nobody else can cut the beginning away.
// Whatever ends this process meanwhile, file and ledger agree. `look`: only counts. Nothing is
// removed, with an Error of kind kViolation, where the receipts are not what was written: what is
// wrong with them is to be seen first.
Result<int64_t> RemoveOldReceipts(int home_fd, Ledger& ledger, const ReceiptsBound& bound,
                                  bool look);

}  // namespace taskcell::gateway
