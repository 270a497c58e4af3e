#include "gateway/ledger/receipt_chain.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/ledger/lock_file.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/sync.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kNumberKey = "{\"n\":";
constexpr std::string_view kPreviousKey = ",\"prev\":\"";
constexpr std::string_view kTimeKey = "\",\"time\":\"";
constexpr std::string_view kReceiptKey = "\",\"receipt\":";
constexpr std::string_view kCutEnd = "\",\"cut\":true}";
constexpr std::size_t kMaxTimeBytes = 40;
constexpr std::size_t kBlockBytes = 64U << 10U;

// Takes `key` off the front; false where it is not there.
bool Skip(std::string_view& text, std::string_view key) {
  if (!text.starts_with(key)) return false;
  text.remove_prefix(key.size());
  return true;
}

Result<UniqueFd> OpenReceipts(int home_fd, int flags) {
  UniqueFd file =
      TRY(sys::OpenAt2(home_fd, kReceiptsFile, flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
                       sys::kResolveBeneath, (flags & O_CREAT) != 0 ? 0600 : 0));
  if (!S_ISREG(TRY(sys::Stat(file.get())).st_mode))
    return Error(Kind::kConfig, Text(kReceiptsFile, " is not a regular file; remove it"));
  return file;
}

// Where the last line begins, and whether it has its newline. A line over the bound is as good as
// one that begins at the bound: neither is a line of ours.
struct Tail {
  int64_t begin = 0;
  int64_t end = 0;
  bool is_whole = true;
};

Result<Tail> FindTail(int fd) {
  Tail tail;
  tail.end = TRY(sys::Stat(fd)).st_size;
  tail.begin = tail.end;
  std::string block(kBlockBytes, '\0');
  while (tail.begin > 0 && tail.end - tail.begin < static_cast<int64_t>(kMaxReceiptBytes)) {
    const int64_t from = std::max<int64_t>(0, tail.begin - static_cast<int64_t>(kBlockBytes));
    const auto size = static_cast<std::size_t>(tail.begin - from);
    const std::size_t got = TRY(sys::ReadAt(fd, {block.data(), size}, from));
    if (got != size) return Error(Kind::kSystem, Text(kReceiptsFile, " was cut while it was read"));
    std::string_view bytes(block.data(), size);
    if (tail.begin == tail.end) {
      tail.is_whole = bytes.back() == '\n';
      bytes.remove_suffix(tail.is_whole ? 1 : 0);
    }
    const std::size_t newline = bytes.rfind('\n');
    if (newline != bytes.npos) {
      tail.begin = from + static_cast<int64_t>(newline) + 1;
      return tail;
    }
    tail.begin = from;
  }
  return tail;
}

Result<std::string> ReadTail(int fd, const Tail& tail) {
  std::string line(static_cast<std::size_t>(tail.end - tail.begin), '\0');
  const std::size_t got = TRY(sys::ReadAt(fd, {line.data(), line.size()}, tail.begin));
  line.resize(got);
  if (line.ends_with('\n')) line.pop_back();
  return line;
}

// Brings file and ledger to what they were before or after a line whose writer did not come to its
// end; afterwards the file ends with a newline.
Status Settle(int fd, Ledger& ledger, ChainState& state) {
  const Tail tail = TRY(FindTail(fd));
  if (!state.next_digest.empty()) {
    if (tail.is_whole && Hex(DigestOf(TRY(ReadTail(fd, tail)))) == state.next_digest) {
      ++state.head;
      state.head_digest = state.next_digest;
    } else if (!tail.is_whole) {
      TRY(sys::Truncate(fd, tail.begin));
    }
    state.next_digest.clear();
    return ledger.SetChain(state);
  }
  // Nobody of ours left that: it stays, as a line of its own, and shows.
  return tail.is_whole ? Ok() : sys::WriteAll(fd, "\n");
}

Status Append(int fd, Ledger& ledger, ChainState& state, const std::string& line) {
  state.next_digest = Hex(DigestOf(line));
  TRY(ledger.SetChain(state));
  const int64_t end = TRY(sys::Stat(fd)).st_size;
  Status written = sys::WriteAll(fd, line + "\n");
  if (written.ok()) written = sys::Synchronize(fd);
  if (!written.ok()) {
    (void)sys::Truncate(fd, end);  // ignoring: the next writer settles it
    return written;
  }
  ++state.head;
  state.head_digest = std::exchange(state.next_digest, "");
  (void)ledger.SetChain(state);  // ignoring: likewise
  return Ok();
}

}  // namespace

std::string WriteChainLine(const ChainLine& line) {
  const std::string head =
      Text(kNumberKey, line.number, kPreviousKey, Hex(line.previous), kTimeKey, line.time);
  return line.receipt.empty() ? Text(head, kCutEnd) : Text(head, kReceiptKey, line.receipt, "}");
}

std::optional<ChainLine> ParseChainLine(std::string_view line) {
  constexpr std::size_t kDigestDigits = 64;
  constexpr uint64_t kMostLines = uint64_t{1} << 62U;
  ChainLine parsed;
  if (!Skip(line, kNumberKey)) return std::nullopt;
  const std::size_t digits = std::min(line.find(','), line.size());
  const std::optional<uint64_t> number = ParseUnsigned(line.substr(0, digits));
  if (!number.has_value() || *number == 0 || *number > kMostLines) return std::nullopt;
  parsed.number = static_cast<int64_t>(*number);
  line.remove_prefix(digits);
  if (!Skip(line, kPreviousKey)) return std::nullopt;
  const std::optional<Digest> previous = ParseDigest(line.substr(0, kDigestDigits));
  if (!previous.has_value()) return std::nullopt;
  parsed.previous = *previous;
  line.remove_prefix(kDigestDigits);
  if (!Skip(line, kTimeKey)) return std::nullopt;
  const std::size_t quote = line.find('"');
  if (quote == line.npos || quote > kMaxTimeBytes) return std::nullopt;
  parsed.time = line.substr(0, quote);
  line.remove_prefix(quote);
  if (line == kCutEnd) return parsed;
  if (!Skip(line, kReceiptKey) || !line.starts_with('{') || !line.ends_with("}}"))
    return std::nullopt;
  parsed.receipt = line.substr(0, line.size() - 1);
  return parsed;
}

Result<UniqueFd> LockReceipts(int home_fd) {
  return TakeHomeLock(home_fd, "receipts.lock", kReceiptsLockWait);
}

Status AppendReceipt(int home_fd, Ledger& ledger, std::string_view receipt,
                     WallClock::time_point time) {
  UniqueFd lock = TRY(LockReceipts(home_fd));
  UniqueFd file = TRY(OpenReceipts(home_fd, O_RDWR | O_APPEND | O_CREAT));
  ChainState state = TRY(ledger.Chain());
  TRY(Settle(file.get(), ledger, state));
  const std::string now = Rfc3339(time);
  ChainLine line;
  line.number = state.head + 1;
  line.previous = ParseDigest(state.head_digest).value_or(kNoDigest);
  line.time = now;
  line.receipt = receipt;
  const std::string text = WriteChainLine(line);
  if (text.size() > kMaxReceiptBytes)
    return Error(Kind::kViolation,
                 Text("it has more than ", kMaxReceiptBytes, " bytes and is not in the chain"));
  return Append(file.get(), ledger, state, text);
}

Status SettleReceipts(int home_fd, Ledger& ledger) {
  Result<UniqueFd> file = OpenReceipts(home_fd, O_RDWR | O_APPEND);
  if (!file.ok() && file.error().err == ENOENT) return Ok();
  if (!file.ok()) return std::move(file).error();
  ChainState state = TRY(ledger.Chain());
  return Settle(file->get(), ledger, state);
}

Status ReadReceiptLines(int home_fd, const std::function<bool(const RawLine&)>& take) {
  Result<UniqueFd> file = OpenReceipts(home_fd, O_RDONLY);
  if (!file.ok() && file.error().err == ENOENT) return Ok();
  if (!file.ok()) return std::move(file).error();
  std::string block(kBlockBytes, '\0');
  std::string line;
  bool too_long = false;
  while (true) {
    const std::size_t got = TRY(sys::Read(file->get(), {block.data(), block.size()}));
    if (got == 0) break;
    std::string_view bytes(block.data(), got);
    while (!bytes.empty()) {
      const std::size_t newline = bytes.find('\n');
      const std::string_view part = bytes.substr(0, newline);
      too_long = too_long || line.size() + part.size() > kMaxReceiptBytes;
      if (!too_long) line += part;
      if (newline == bytes.npos) break;
      if (!take({line, true, too_long})) return Ok();
      line.clear();
      too_long = false;
      bytes.remove_prefix(newline + 1);
    }
  }
  if (!line.empty() || too_long) (void)take({line, false, too_long});  // it is the last in any case
  return Ok();
}

std::string_view RunOfReceipt(std::string_view receipt) {
  constexpr std::size_t kIdDigits = 32;
  if (!Skip(receipt, "{\"run_id\":\"") || receipt.size() <= kIdDigits || receipt[kIdDigits] != '"')
    return "";
  const std::string_view id = receipt.substr(0, kIdDigits);
  return id.find_first_not_of("0123456789abcdef") == id.npos ? id : "";
}

}  // namespace taskcell::gateway
