#include "gateway/sweep/retention.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

#include "gateway/ledger/audit.h"
#include "gateway/ledger/gateway_log.h"
#include "gateway/ledger/ledger.h"
#include "gateway/ledger/receipt_retention.h"
#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr int64_t kDaySeconds = 86400;
constexpr int64_t kMillis = 1000;
constexpr std::size_t kMaxEntries = 1'000'000;  // of one directory
constexpr int kMaxDepth = 64;
constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

// What is kept is younger; 0 where age does not count.
int64_t CutoffSeconds(const Bound& bound, int64_t now_s) {
  if (!bound.days.has_value()) return 0;
  return std::max<int64_t>(now_s - static_cast<int64_t>(*bound.days) * kDaySeconds, 0);
}

// One thing that may go.
struct Item {
  std::string name;
  std::string age;  // whose order is that of age
  uint64_t bytes = 0;
  bool is_old = false;
};

// Of what there is, the oldest first, whatever is old or too much.
std::vector<Item> Choose(std::vector<Item> items, const Bound& bound) {
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.age != b.age ? a.age < b.age : a.name < b.name;
  });
  uint64_t left = 0;
  for (const Item& item : items) left += item.bytes;
  std::vector<Item> going;
  for (Item& item : items) {
    if (!item.is_old && (!bound.bytes.has_value() || left <= *bound.bytes)) continue;
    left -= item.bytes;
    going.push_back(std::move(item));
  }
  return going;
}

// nullopt: there is no such directory.
Result<std::optional<UniqueFd>> OpenBelow(int dir_fd, const std::string& name) {
  Result<UniqueFd> opened = sys::OpenAt2(dir_fd, name, kOpenDirectory, sys::kResolveBeneath);
  if (!opened.ok() && opened.error().err == ENOENT) return std::optional<UniqueFd>();
  return std::optional<UniqueFd>(TRY(std::move(opened)));
}

Result<uint64_t> BytesBelow(int dir_fd, int depth) {
  uint64_t bytes = 0;
  for (const sys::DirectoryEntry& entry : TRY(sys::ListDirectory(dir_fd, kMaxEntries))) {
    const struct stat info = TRY(sys::StatAt(dir_fd, entry.name));
    bytes += static_cast<uint64_t>(info.st_size);
    if (!S_ISDIR(info.st_mode) || depth == 0) continue;
    UniqueFd below = TRY(sys::OpenAt2(dir_fd, entry.name, kOpenDirectory, sys::kResolveBeneath));
    bytes += TRY(BytesBelow(below.get(), depth - 1));
  }
  return bytes;
}

class Retainer {
 public:
  Retainer(const Home& home, const Retention& retention, const SweepOptions& options,
           SweepReport& report)
      : home_(home), retention_(retention), options_(options), report_(report) {}

  void Apply() {
    Try("receipts", retention_.receipts, [this] { return Receipts(); });
    Try("exports", retention_.exports, [this] { return Exports(); });
    Try("logs", retention_.logs, [this] { return Logs(); });
    Try("ledger", retention_.ledger, [this] { return OfLedger(); });
  }

 private:
  template <typename Work>
  void Try(std::string_view what, const Bound& bound, Work work) {
    if (!bound.is_set()) return;
    Status done = work();
    if (done.ok()) return;
    report_.notes.push_back(Text("[taskcell.retention] ", what, ": ", done.error().text));
    ++report_.failures["retention_failed"];
  }

  void Tell(int64_t count, std::string_view one, std::string_view many) {
    if (count > 0) report_.expired.push_back(Text(count, " ", count == 1 ? one : many));
  }

  Status Receipts() {
    std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home_.fd.get(), home_.path));
    if (!ledger.has_value()) return Ok();
    ReceiptsBound bound;
    const int64_t cutoff = CutoffSeconds(retention_.receipts, options_.now_s);
    if (cutoff > 0) bound.before = Rfc3339(MomentOf(std::chrono::seconds(cutoff)));
    bound.bytes = retention_.receipts.bytes;
    const int64_t count = TRY(RemoveOldReceipts(home_.fd.get(), *ledger, bound, options_.dry_run));
    Tell(count, "receipt", "receipts");
    return Ok();
  }

  Status Exports() {
    std::optional<UniqueFd> exports = TRY(OpenBelow(home_.fd.get(), "exports"));
    if (!exports.has_value()) return Ok();
    const int64_t cutoff = CutoffSeconds(retention_.exports, options_.now_s);
    std::vector<Item> items;
    for (const sys::DirectoryEntry& entry : TRY(sys::ListDirectory(exports->get(), kMaxEntries))) {
      if (!IsRunId(entry.name)) continue;
      UniqueFd run =
          TRY(sys::OpenAt2(exports->get(), entry.name, kOpenDirectory, sys::kResolveBeneath));
      const struct stat info = TRY(sys::Stat(run.get()));
      const auto made = MomentOf(std::chrono::seconds(info.st_mtim.tv_sec));
      items.push_back({entry.name, Rfc3339(made), TRY(BytesBelow(run.get(), kMaxDepth)),
                       info.st_mtim.tv_sec < cutoff});
    }
    const std::vector<Item> going = Choose(std::move(items), retention_.exports);
    for (const Item& item : going)
      if (!options_.dry_run) TRY(mounts::RemoveTree(exports->get(), item.name));
    Tell(static_cast<int64_t>(going.size()), "export", "exports");
    return Ok();
  }

  Status Logs() {
    std::optional<UniqueFd> logs = TRY(OpenBelow(home_.fd.get(), "logs"));
    if (!logs.has_value()) return Ok();
    const std::string today = LogName(MomentOf(std::chrono::seconds(options_.now_s)));
    const int64_t cutoff = CutoffSeconds(retention_.logs, options_.now_s);
    const std::string oldest = LogName(MomentOf(std::chrono::seconds(cutoff)));
    std::vector<Item> items;
    for (const sys::DirectoryEntry& entry : TRY(sys::ListDirectory(logs->get(), kMaxEntries))) {
      const bool is_log = entry.name.size() == today.size() &&
                          entry.name.starts_with(today.substr(0, today.rfind('.') + 1));
      if (!is_log || entry.name >= today) continue;
      const struct stat info = TRY(sys::StatAt(logs->get(), entry.name));
      if (!S_ISREG(info.st_mode)) continue;
      items.push_back({entry.name, entry.name, static_cast<uint64_t>(info.st_size),
                       cutoff > 0 && entry.name < oldest});
    }
    const std::vector<Item> going = Choose(std::move(items), retention_.logs);
    for (const Item& item : going)
      if (!options_.dry_run) TRY(sys::RemoveFile(logs->get(), item.name));
    Tell(static_cast<int64_t>(going.size()), "log", "logs");
    return Ok();
  }

  Status OfLedger() {
    constexpr int64_t kBatch = 100;
    constexpr int64_t kAnyTime = std::numeric_limits<int64_t>::max();
    std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home_.fd.get(), home_.path));
    if (!ledger.has_value()) return Ok();
    int64_t count = 0;
    const int64_t cutoff_ms = CutoffSeconds(retention_.ledger, options_.now_s) * kMillis;
    if (cutoff_ms > 0) count = TRY(ledger->RemoveEnded(cutoff_ms, kAnyTime, options_.dry_run));
    if (retention_.ledger.bytes.has_value() && options_.dry_run)
      TellOfBound(TRY(ledger->UsedBytes()), *retention_.ledger.bytes);
    if (retention_.ledger.bytes.has_value() && !options_.dry_run) {
      while (static_cast<uint64_t>(TRY(ledger->UsedBytes())) > *retention_.ledger.bytes) {
        const int64_t more = TRY(ledger->RemoveEnded(kAnyTime, kBatch));
        if (more == 0) break;
        count += more;
      }
    }
    Tell(count, "task of the ledger", "tasks of the ledger");
    return options_.dry_run ? Ok() : ledger->Shrink();
  }

  // How many tasks would go for it only their removal shows.
  void TellOfBound(int64_t used, uint64_t bound) {
    if (static_cast<uint64_t>(used) <= bound) return;
    report_.notes.push_back(Text("[taskcell.retention] ledger: it has ", used,
                                 " bytes, more than ledger_bytes (", bound,
                                 "): the oldest tasks that ended would be removed until it has no "
                                 "more"));
  }

  const Home& home_;
  const Retention& retention_;
  const SweepOptions& options_;
  SweepReport& report_;
};

}  // namespace

void ApplyRetention(const Home& home, const Retention& retention, const SweepOptions& options,
                    SweepReport& report) {
  Retainer(home, retention, options, report).Apply();
}

}  // namespace taskcell::gateway
