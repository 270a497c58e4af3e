#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/ledger/audit.h"
#include "gateway/ledger/digest.h"
#include "gateway/ledger/ledger.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// Every receipt of a home, one a line, each line with the digest of the one before it; the ledger
// knows the last one's. Whoever changes the file alone shows (VerifyReceipts); who may write both
// can write both anew.
inline constexpr char kReceiptsFile[] = "receipts.jsonl";
inline constexpr std::size_t kMaxReceiptBytes = 16U << 20U;  // of one line
// How long others may hold the file before a receipt is given up.
inline constexpr std::chrono::milliseconds kReceiptsLockWait{10000};

// What a line says of itself.
struct ChainLine {
  int64_t number = 0;  // from 1, over the whole life of the chain
  Digest previous = {};
  std::string_view time;  // RFC 3339
  // The receipt; empty in a line that stands for all up to `number`, which were removed for their
  // age: then `previous` is the digest of the last of those.
  std::string_view receipt;
};

// A line as it is written, without its newline. Pure.
std::string WriteChainLine(const ChainLine& line);
// Its inverse; nullopt for what WriteChainLine never writes. Pure.
std::optional<ChainLine> ParseChainLine(std::string_view line);

// The `previous` of line 1.
inline constexpr Digest kNoDigest = {};

// Waits for whoever writes, and keeps others from it as long as the result is open.
Result<UniqueFd> LockReceipts(int home_fd);

// Appends `receipt`, one JSON object, to <home>/receipts.jsonl (0600). Whatever ends this process
// meanwhile, the line is there whole or the next call removes what there is of it. The line
// continues what the ledger knows, not what the file holds: a line that was changed or cut away is
// never made up for. Several processes may append.
Status AppendReceipt(int home_fd, Ledger& ledger, std::string_view receipt,
                     WallClock::time_point time);

// With the lock held: does away with what is left of a writer that was ended, in the file and in
// the ledger.
Status SettleReceipts(int home_fd, Ledger& ledger);

// With the lock held: reads the file from its beginning, line by line. False from `take` ends it. A
// last line without a newline is told as `is_whole` false. Nothing is taken where there is no file.
struct RawLine {
  std::string_view text;
  bool is_whole = true;
  bool is_too_long = false;  // `text` is only its beginning
};
Status ReadReceiptLines(int home_fd, const std::function<bool(const RawLine&)>& take);

// The run a receipt is of: its first member. Empty where it is none. Pure.
std::string_view RunOfReceipt(std::string_view receipt);

}  // namespace taskcell::gateway
