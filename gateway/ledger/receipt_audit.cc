#include "gateway/ledger/receipt_audit.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include "gateway/ledger/digest.h"
#include "gateway/ledger/receipt_chain.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

// A line, without what it holds.
struct Seen {
  Digest digest = {};
  Digest previous = {};
  int64_t number = 0;  // 0: it is no line of ours
  bool is_cut = false;
};

class Verifier {
 public:
  Verifier(int home_fd, ChainState state) : home_fd_(home_fd), state_(std::move(state)) {}

  Status Read() {
    return ReadReceiptLines(home_fd_, [this](const RawLine& raw) {
      Take(raw);
      return true;
    });
  }

  ChainReport Judge() {
    UseUnsettledHead();
    report_.last = state_.head;
    report_.last_digest = state_.head_digest;
    for (std::size_t i = 0; i < lines_.size(); ++i) places_.emplace(lines_[i].digest, i);
    WalkBack();
    std::sort(faults_.begin(), faults_.end(),
              [](const ChainFault& a, const ChainFault& b) { return a.line < b.line; });
    report_.fault_count = static_cast<int64_t>(faults_.size());
    faults_.resize(std::min(faults_.size(), kMaxFaultsTold));
    report_.faults = std::move(faults_);
    return std::move(report_);
  }

 private:
  void Take(const RawLine& raw) {
    if (!raw.is_whole && !state_.next_digest.empty()) {
      report_.notes.emplace_back(
          "the last line was not written whole, since its writer was ended; the next receipt "
          "removes it");
      return;
    }
    Seen seen;
    seen.digest = DigestOf(raw.text);
    const std::optional<ChainLine> line =
        raw.is_whole && !raw.is_too_long ? ParseChainLine(raw.text) : std::nullopt;
    if (line.has_value()) {
      seen.number = line->number;
      seen.previous = line->previous;
      seen.is_cut = line->receipt.empty();
      CompareCopy(line->receipt);
    }
    lines_.push_back(seen);
  }

  // The receipt that lies in a file of its own is to be the same.
  void CompareCopy(std::string_view receipt) {
    const std::string_view run = RunOfReceipt(receipt);
    if (run.empty()) return;
    const std::string path = Text("sandbox/receipts/", run, ".json");
    Result<std::string> copy = sys::ReadFile(home_fd_, path, kMaxReceiptBytes);
    if (!copy.ok() && copy.error().err == ENOENT) return;
    if (copy.ok() && Trim(copy.value()) == receipt) return;
    Fault(lines_.size(), copy.ok() ? Text(path, " does not hold what this line holds")
                                   : Text(path, ": ", copy.error().text));
  }

  // The writer of the last line came to its end but for telling the ledger.
  void UseUnsettledHead() {
    if (state_.next_digest.empty() || lines_.empty()) return;
    if (Hex(lines_.back().digest) != state_.next_digest) return;
    ++state_.head;
    state_.head_digest = state_.next_digest;
  }

  void Fault(std::size_t index, std::string text) {
    faults_.push_back({static_cast<int64_t>(index) + 1, std::move(text)});
  }

  // From the last line, whose digest the ledger knows, to the first: each line that is what it was
  // vouches for the one before it.
  void WalkBack() {
    int64_t number = state_.head;
    std::optional<Digest> wanted = ParseDigest(state_.head_digest);
    std::size_t left = lines_.size();
    while (left > 0 && number > 0) {
      const Seen& line = lines_[left - 1];
      if (line.is_cut) break;
      const bool is_it = wanted.has_value() ? line.digest == *wanted : line.number == number;
      if (is_it) {
        if (wanted.has_value()) ++report_.receipts;
        wanted = line.previous;
        --number;
        --left;
        continue;
      }
      // So that this line stands where that receipt should.
      const bool is_in_its_place = left > 1 ? lines_[left - 2].number == number - 1 : number == 1;
      auto elsewhere = wanted.has_value() ? places_.find(*wanted) : places_.end();
      if (elsewhere != places_.end() && elsewhere->second < left) {
        Fault(left - 1, "does not belong here: it was put in, or belongs further up");
        --left;
      } else if (elsewhere != places_.end()) {
        Fault(left - 1, Text("behind it receipt ", number,
                             " is missing, which stands further "
                             "down"));
        wanted = lines_[elsewhere->second].previous;
        --number;
      } else if (line.number == number || is_in_its_place) {
        Fault(left - 1, "was changed: it is not what was written");
        wanted.reset();
        // Unless that, too, was changed.
        if (places_.contains(line.previous)) wanted = line.previous;
        --number;
        --left;
      } else if (line.number > 0 && line.number < number) {
        Fault(left - 1,
              Text("behind it the receipts ", line.number + 1, " to ", number, " are missing"));
        number = line.number;
        wanted.reset();
      } else {
        Fault(left - 1, "does not belong here: it was put in, or changed");
        --left;
      }
    }
    EndWalk(left, number, wanted);
  }

  // What is left should be nothing, or the one line that stands for what was removed.
  void EndWalk(std::size_t left, int64_t number, const std::optional<Digest>& wanted) {
    if (left > 0 && lines_[left - 1].is_cut) {
      const Seen& cut = lines_[left - 1];
      report_.removed = cut.number;
      const bool is_recorded = cut.number <= state_.cut;
      const bool fits = cut.number == number && (!wanted.has_value() || cut.previous == *wanted) &&
                        (cut.number != state_.cut || Hex(cut.previous) == state_.cut_digest);
      if (!is_recorded || !fits)
        Fault(left - 1, Text("stands for the receipts up to ", cut.number,
                             ", but those that were removed for their age end with ", state_.cut));
      --left;
    } else if (number > 0) {
      Fault(0, lines_.empty() ? Text("all ", number, " receipts are missing")
                              : Text("before it the receipts 1 to ", number, " are missing"));
    } else if (left == 0 && wanted.has_value() && *wanted != kNoDigest) {
      Fault(0, "does not begin the chain");
    }
    for (; left > 0; --left) Fault(left - 1, "does not belong here: it was put in");
  }

  int home_fd_;
  ChainState state_;
  std::vector<Seen> lines_;
  std::map<Digest, std::size_t> places_;
  std::vector<ChainFault> faults_;
  ChainReport report_;
};

}  // namespace

Result<ChainReport> VerifyLocked(int home_fd, const ChainState& state) {
  Verifier verifier(home_fd, state);
  TRY(verifier.Read());
  return verifier.Judge();
}

Result<ChainReport> VerifyReceipts(int home_fd, const std::string& home_path) {
  std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home_fd, home_path));
  // Without a ledger nobody ever wrote: a lock would leave a file.
  UniqueFd lock;
  if (ledger.has_value()) lock = TRY(LockReceipts(home_fd));
  ChainState state;
  if (ledger.has_value()) state = TRY(ledger->Chain());
  return VerifyLocked(home_fd, state);
}

}  // namespace taskcell::gateway
