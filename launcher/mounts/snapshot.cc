#include "launcher/mounts/snapshot.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/mounts/component.h"
#include "launcher/mounts/file_copier.h"
#include "launcher/mounts/inner_links.h"
#include "launcher/mounts/link_scan.h"
#include "launcher/mounts/settled.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/copy.h"
#include "launcher/sys/file.h"
#include "launcher/sys/read_lease.h"

namespace taskcell::mounts {
namespace {

constexpr std::string_view kUnmountable = "agent_dir_unmountable";
constexpr std::size_t kMaxWarnings = 64;

// A path for a person: of a long one, which may have kMaxSnapshotDepth names of 255 bytes, the
// beginning and the end. It is cut before it is made printable, so that no escape is cut.
std::string Shown(std::string_view path) {
  constexpr std::size_t kHead = 256;
  constexpr std::size_t kTail = 512;  // the whole last name
  if (path.size() <= kHead + kTail) return Printable(path);
  return Text(Printable(path.substr(0, kHead)), "[...]",
              Printable(path.substr(path.size() - kTail)));
}

// Why a copy stopped: a bound of the snapshot was passed.
Error OverBound(std::string text) {
  return Error(Kind::kViolation, std::move(text), EFBIG).Coded(kUnmountable);
}
bool IsOverBound(const Error& error) { return error.code == kUnmountable; }

class Copier {
 public:
  Copier(int agent_dir, int target, Snapshot& out, const SnapshotBounds& bounds)
      : agent_dir_(agent_dir), target_(target), out_(out), bounds_(bounds) {}

  Status Start() {
    listed_ = TRY(ListedEntries(agent_dir_));
    return Ok();
  }

  Status CopyTop(const AllowedEntry& allowed) {
    const int to_dir = target_;
    std::string name(allowed.name);
    Note(name);
    SnapshotEntry entry{name, Verdict::kAbsent, Reason::kNone, {}};
    Finding finding = TRY(JudgeAllowed(agent_dir_, allowed, listed_));
    if (finding.verdict == Verdict::kSafe) {
      TRY(allowed.kind == cell::EntryKind::kFile ? CopyFile(to_dir, name, finding)
                                                 : CopyTopDirectory(to_dir, name, finding));
    }
    entry.verdict = finding.verdict;
    entry.reason = finding.reason;
    entry.note = finding.note;
    if (entry.verdict == Verdict::kSkip) Warn(name, finding.reason, finding.note);
    out_.entries.push_back(std::move(entry));
    return Ok();
  }

  // After all entries: the links, and what is to be left out with what was found unsafe.
  Status Finish(Subtree subtree) {
    while (true) {
      std::vector<InnerLinks::Removed> removed = TRY(links_.RemoveUnsafe(target_));
      for (const InnerLinks::Removed& each : removed)
        LeaveOut(each.path, Reason::kSymlink, each.why);
      if (subtree == Subtree::kPrune || unsafe_.empty()) return Ok();
      // A directory less, and links into it lead to nothing.
      TRY(SkipUnsafe());
    }
  }

 private:
  void Note(std::string_view path) const {
    const std::span<char> place = bounds_.progress;
    if (place.empty()) return;
    const std::size_t size = std::min(path.size(), place.size() - 1);
    std::copy_n(path.begin(), size, place.begin());
    place[size] = '\0';
  }

  // Something inside an entry is left out.
  void LeaveOut(const std::string& path, Reason reason, const std::string& note) {
    Warn(path, reason, note);
    unsafe_.try_emplace(path.substr(0, path.find('/')), path);
  }

  Status SkipUnsafe() {
    for (const auto& [top, path] : std::exchange(unsafe_, {})) {
      TRY(RemoveTree(target_, top));
      links_.Forget(top);
      for (SnapshotEntry& entry : out_.entries) {
        if (entry.name != top) continue;
        entry.verdict = Verdict::kSkip;
        entry.note = Text("'", Shown(path), "' in it is unsafe");
        Warn(top, Reason::kNone, entry.note);
      }
    }
    return Ok();
  }

  void Warn(std::string_view path, Reason why, std::string_view note) {
    // The others follow from what stands in the directory.
    if (why == Reason::kRace || why == Reason::kUnreadable || why == Reason::kMount)
      out_.repeatable = false;
    if (out_.warnings.size() == kMaxWarnings) {
      out_.warnings.emplace_back("more entries were left out than are listed here");
      return;
    }
    if (out_.warnings.size() > kMaxWarnings) return;
    std::string_view reason = Name(why);
    out_.warnings.push_back(Text("agent entry '", Shown(path), "' left out (",
                                 reason.empty() ? "whole" : reason, "): ", note));
  }

  // Refuses one more entry of `bytes` where that passes a bound.
  Status CheckRoom(uint64_t bytes) const {
    if (out_.copied == bounds_.entries)
      return OverBound(Text("the agent directory has more than ", bounds_.entries, " entries"));
    if (bytes > bounds_.bytes - out_.bytes)
      return OverBound(Text("the agent directory has more than ", bounds_.bytes, " bytes to copy"));
    return Ok();
  }

  Status CopyFile(int to_dir, const std::string& name, Finding& finding) {
    for (int tries = 0; tries < kCopyTries; ++tries) {
      const sys::ReadLease lease(finding.fd.get());
      struct stat before = TRY(StatSettled(finding.fd.get()));
      const auto size = static_cast<uint64_t>(before.st_size);
      TRY(CheckRoom(size));
      if (tries > 0) TRY(sys::Rewind(finding.fd.get()));
      // Where a save renamed another file over it, it has changed once, and never will again: the
      // next copy of this descriptor is the version that was judged.
      if (!TRY(copies_.CopyOnce(to_dir, name, finding.fd.get(), before, LinksOf(finding, before))))
        continue;
      if (lease.IsBroken()) {
        TRY(sys::RemoveFile(to_dir, name));
        continue;
      }
      if (lease.state() == sys::ReadLease::State::kWriters) out_.repeatable = false;
      if (lease.state() == sys::ReadLease::State::kNone) out_.all_leased = false;
      out_.bytes += size;
      ++out_.copied;
      return Ok();
    }
    finding.verdict = Verdict::kSkip;
    finding.reason = Reason::kRace;
    finding.note = "it kept changing while it was copied";
    return Ok();
  }

  const LinkScan* LinksOf(const Finding& finding, const struct stat& now) const {
    return finding.links > 1 && now.st_nlink > 1 ? &*scan_ : nullptr;
  }

  Status CopyTopDirectory(int to_dir, const std::string& name, Finding& finding) {
    const uint64_t bytes = out_.bytes;
    const std::size_t copied = out_.copied;
    const std::size_t looked_at = looked_at_;
    Status done = CopyDirectory(to_dir, name, finding.fd.get(), name, 1);
    if (done.ok()) return done;
    if (!IsOverBound(done.error())) return done;
    TRY(RemoveTree(to_dir, name));
    links_.Forget(name);
    unsafe_.erase(name);
    out_.bytes = bytes;
    out_.copied = copied;
    looked_at_ = looked_at;
    finding.verdict = Verdict::kSkip;
    finding.note = done.error().text;
    return Ok();
  }

  Status CopyDirectory(int to_dir, const std::string& name, int from, const std::string& path,
                       int depth) {
    if (depth > bounds_.depth)
      return OverBound(Text("the agent directory is deeper than ", bounds_.depth, " levels"));
    TRY(CheckRoom(0));
    ++out_.copied;
    TRY(sys::MakeDirectory(to_dir, name, 0700));
    UniqueFd to = TRY(OpenComponent(to_dir, name, O_RDONLY | O_DIRECTORY));
    Result<std::vector<sys::DirectoryEntry>> listed = sys::ListDirectory(from, bounds_.entries);
    if (!listed.ok()) {
      if (listed.error().err == EFBIG)
        return OverBound(Text("the agent directory has more than ", bounds_.entries, " entries"));
      return std::move(listed).error();
    }
    for (const sys::DirectoryEntry& entry : listed.value())
      TRY(CopyInner(to.get(), from, entry.name, Text(path, "/", entry.name), depth));
    return sys::ChangeMode(to.get(), 0555);
  }

  Status CopyInner(int to_dir, int from_dir, const std::string& name, const std::string& path,
                   int depth) {
    // Left-out entries are looked at too: they count against the bound, or a directory of a
    // million links would cost a million looks.
    if (++looked_at_ > bounds_.entries)
      return OverBound(Text("the agent directory has more than ", bounds_.entries, " entries"));
    Note(path);
    cell::EntryKind kind = cell::EntryKind::kFile;
    Finding finding = TRY(JudgeAny(from_dir, name, kind));
    if (finding.reason == Reason::kHardlink && TRY(MayBeClosed(finding)))
      finding = TRY(JudgeAny(from_dir, name, kind, finding.links));
    if (finding.reason == Reason::kSymlink) {
      TRY(CheckRoom(0));
      if (TRY(links_.Copy(to_dir, from_dir, name, path))) {
        ++out_.copied;
        return Ok();
      }
    }
    if (finding.verdict == Verdict::kSafe) {
      TRY(kind == cell::EntryKind::kFile
              ? CopyFile(to_dir, name, finding)
              : CopyDirectory(to_dir, name, finding.fd.get(), path, depth + 1));
    }
    if (finding.verdict == Verdict::kSkip) LeaveOut(path, finding.reason, finding.note);
    return Ok();
  }

  // Looks through SKILLS and wiki once, with the first file that has several names.
  Result<bool> MayBeClosed(const Finding& finding) {
    if (!scan_) scan_.emplace(TRY(LinkScan::Make(agent_dir_, bounds_.entries, bounds_.depth)));
    return scan_->MayBeClosed(finding.device, finding.inode);
  }

  const int agent_dir_;
  const int target_;
  std::set<std::string_view> listed_;
  FileCopier copies_;
  InnerLinks links_;
  std::optional<LinkScan> scan_;
  std::map<std::string, std::string> unsafe_;  // entry: the first thing in it that was left out
  Snapshot& out_;
  const SnapshotBounds& bounds_;
  std::size_t looked_at_ = 0;
};

}  // namespace

Result<Snapshot> SnapshotAgentDirectory(int agent_dir_fd, int target_dir_fd, Subtree subtree,
                                        const SnapshotBounds& bounds) {
  Snapshot snapshot;
  Copier copier(agent_dir_fd, target_dir_fd, snapshot, bounds);
  TRY(copier.Start().With("snapshot"));
  for (const AllowedEntry& allowed : kAgentEntries)
    TRY(copier.CopyTop(allowed).With(Text("snapshot of agent entry '", allowed.name, "'")));
  TRY(copier.Finish(subtree).With("snapshot"));
  TRY(sys::ChangeMode(target_dir_fd, 0555));
  return snapshot;
}

}  // namespace taskcell::mounts
