#include "gateway/ledger/receipt_retention.h"

#include <fcntl.h>

#include <cerrno>
#include <vector>

#include "gateway/ledger/receipt_audit.h"
#include "gateway/ledger/receipt_chain.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/sync.h"

namespace taskcell::gateway {
namespace {

constexpr char kNewFile[] = "receipts.jsonl.new";

// The lines that go.
struct Going {
  std::size_t lines = 0;  // of the file: with the one that stands for those that went before
  int64_t receipts = 0;
  int64_t last = 0;  // its number
  Digest digest = {};
  std::string time;
  std::vector<std::string> runs;
};

Result<uint64_t> FileBytes(int home_fd) {
  Result<struct stat> info = sys::StatAt(home_fd, kReceiptsFile);
  if (!info.ok() && info.error().err == ENOENT) return uint64_t{0};
  return static_cast<uint64_t>(TRY(std::move(info)).st_size);
}

Result<Going> ChooseLines(int home_fd, const ReceiptsBound& bound) {
  Going going;
  uint64_t left = TRY(FileBytes(home_fd));
  TRY(ReadReceiptLines(home_fd, [&](const RawLine& raw) {
    const std::optional<ChainLine> line = ParseChainLine(raw.text);
    if (!line.has_value()) return false;
    const bool stands_for_others = line->receipt.empty();
    const bool is_old = !bound.before.empty() && line->time < bound.before;
    const bool is_too_much = bound.bytes.has_value() && left > *bound.bytes;
    if (!stands_for_others && !is_old && !is_too_much) return false;
    ++going.lines;
    left -= raw.text.size() + 1;
    if (stands_for_others) return true;
    ++going.receipts;
    going.last = line->number;
    going.digest = DigestOf(raw.text);
    going.time = line->time;
    going.runs.emplace_back(RunOfReceipt(line->receipt));
    return true;
  }));
  return going;
}

Status WriteRest(int home_fd, const Going& going) {
  Status removed = sys::RemoveFile(home_fd, kNewFile);
  if (!removed.ok() && removed.error().err != ENOENT) return removed;
  UniqueFd file = TRY(sys::OpenAt2(home_fd, kNewFile, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                   sys::kResolveBeneath, 0600));
  ChainLine first;
  first.number = going.last;
  first.previous = going.digest;
  first.time = going.time;
  TRY(sys::WriteAll(file.get(), WriteChainLine(first) + "\n"));
  std::size_t at = 0;
  Status written = Ok();
  TRY(ReadReceiptLines(home_fd, [&](const RawLine& raw) {
    if (at++ < going.lines) return true;
    written = sys::WriteAll(file.get(), Text(raw.text, "\n"));
    return written.ok();
  }));
  TRY(std::move(written));
  return sys::Synchronize(file.get());
}

// The copies go first: a line without one is whole, one without its line would stay for ever.
Status RemoveCopies(int home_fd, const Going& going) {
  for (const std::string& run : going.runs) {
    if (run.empty()) continue;
    Status removed = sys::RemoveFile(home_fd, Text("sandbox/receipts/", run, ".json"));
    if (!removed.ok() && removed.error().err != ENOENT) return removed;
  }
  return Ok();
}

Status CheckChain(int home_fd, const ChainState& state) {
  const ChainReport report = TRY(VerifyLocked(home_fd, state));
  if (report.fault_count == 0) return Ok();
  return Error(Kind::kViolation,
               Text("no receipt is removed while they are not what was written (line ",
                    report.faults.front().line, " ", report.faults.front().text,
                    "): see taskcell audit verify"));
}

Status Replace(int home_fd, Ledger& ledger, ChainState state, const Going& going) {
  TRY(RemoveCopies(home_fd, going));
  TRY(WriteRest(home_fd, going));
  // Before the file: one that is longer than the ledger asks for is verified all the same.
  state.cut = going.last;
  state.cut_digest = Hex(going.digest);
  TRY(ledger.SetChain(state));
  TRY(sys::Rename(home_fd, kNewFile, kReceiptsFile));
  return sys::Synchronize(home_fd);
}

}  // namespace

Result<int64_t> RemoveOldReceipts(int home_fd, Ledger& ledger, const ReceiptsBound& bound,
                                  bool look) {
  UniqueFd lock = TRY(LockReceipts(home_fd));
  if (!look) TRY(SettleReceipts(home_fd, ledger));
  const Going going = TRY(ChooseLines(home_fd, bound));
  if (going.receipts == 0) return int64_t{0};
  const ChainState state = TRY(ledger.Chain());
  TRY(CheckChain(home_fd, state));
  if (!look) TRY(Replace(home_fd, ledger, state, going));
  return going.receipts;
}

}  // namespace taskcell::gateway
