#include "launcher/mounts/snapshot.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/copy.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

constexpr std::string_view kUnmountable = "agent_dir_unmountable";
constexpr std::size_t kMaxWarnings = 64;

// Why a copy stopped: a bound of the snapshot was passed.
Error OverBound(std::string text) {
  return Error(Kind::kViolation, std::move(text), EFBIG).Coded(kUnmountable);
}
bool IsOverBound(const Error& error) { return error.code == kUnmountable; }

bool SameContent(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

class Copier {
 public:
  Copier(Snapshot& out, const SnapshotBounds& bounds) : out_(out), bounds_(bounds) {}

  Status CopyTop(int from_dir, int to_dir, const AllowedEntry& allowed) {
    std::string name(allowed.name);
    SnapshotEntry entry{name, Verdict::kAbsent, Reason::kNone, {}};
    Finding finding = TRY(Judge(from_dir, name, allowed.kind));
    if (finding.verdict == Verdict::kSafe) {
      TRY(allowed.kind == cell::EntryKind::kFile ? CopyFile(to_dir, name, finding)
                                                 : CopyTopDirectory(to_dir, name, finding));
    }
    entry.verdict = finding.verdict;
    entry.reason = finding.reason;
    entry.note = finding.note;
    if (entry.verdict == Verdict::kSkip) Warn(name, finding);
    out_.entries.push_back(std::move(entry));
    return Ok();
  }

 private:
  void Warn(std::string_view path, const Finding& finding) {
    if (out_.warnings.size() == kMaxWarnings) {
      out_.warnings.emplace_back("more entries were left out than are listed here");
      return;
    }
    if (out_.warnings.size() > kMaxWarnings) return;
    std::string_view reason = Name(finding.reason);
    out_.warnings.push_back(Text("agent entry '", Printable(path), "' left out (",
                                 reason.empty() ? "over_limit" : reason, "): ", finding.note));
  }

  // Refuses one more entry of `bytes` where that passes a bound.
  Status CheckRoom(uint64_t bytes) const {
    if (out_.copied == bounds_.entries)
      return OverBound(Text("the agent directory has more than ", bounds_.entries, " entries"));
    if (bytes > bounds_.bytes - out_.bytes)
      return OverBound(Text("the agent directory has more than ", bounds_.bytes, " bytes to copy"));
    return Ok();
  }

  // Copies exactly the size that was judged. False when the file turned out shorter.
  static Result<bool> CopyBytes(int to, int from, uint64_t size) {
    if (size > 0 && TRY(sys::CloneContent(to, from)))
      return static_cast<uint64_t>(TRY(sys::Stat(to)).st_size) == size;
    std::array<char, 65536> chunk;
    uint64_t left = size;
    while (left > 0) {
      std::size_t want = std::min(left, chunk.size());
      std::size_t got = TRY(sys::Read(from, std::span(chunk.data(), want)));
      if (got == 0) return false;
      TRY(sys::WriteAll(to, std::string_view(chunk.data(), got)));
      left -= got;
    }
    return true;
  }

  // Copies the judged file once; false when it changed under the copy (the target is removed then).
  static Result<bool> CopyOnce(int to_dir, const std::string& name, int from,
                               const struct stat& before) {
    UniqueFd to = TRY(sys::OpenAt2(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                   sys::kResolveBeneath, 0600));
    bool whole = TRY(CopyBytes(to.get(), from, static_cast<uint64_t>(before.st_size)));
    struct stat after = TRY(sys::Stat(from));
    // A link made meanwhile counts: content and link count must hold to the end of the copy.
    if (whole && after.st_nlink == 1 && SameContent(before, after)) {
      TRY(sys::ChangeMode(to.get(), 0444));
      return true;
    }
    TRY(sys::RemoveFile(to_dir, name));
    return false;
  }

  Status CopyFile(int to_dir, const std::string& name, Finding& finding) {
    for (int tries = 0; tries < kCopyTries; ++tries) {
      struct stat before = TRY(sys::Stat(finding.fd.get()));
      const auto size = static_cast<uint64_t>(before.st_size);
      TRY(CheckRoom(size));
      TRY(sys::Rewind(finding.fd.get()));
      if (!TRY(CopyOnce(to_dir, name, finding.fd.get(), before))) continue;
      out_.bytes += size;
      ++out_.copied;
      return Ok();
    }
    finding.verdict = Verdict::kSkip;
    finding.reason = Reason::kRace;
    finding.note = "it kept changing while it was copied";
    return Ok();
  }

  Status CopyTopDirectory(int to_dir, const std::string& name, Finding& finding) {
    const uint64_t bytes = out_.bytes;
    const std::size_t copied = out_.copied;
    const std::size_t looked_at = looked_at_;
    Status done = CopyDirectory(to_dir, name, finding.fd.get(), name, 1);
    if (done.ok()) return done;
    if (!IsOverBound(done.error())) return done;
    TRY(RemoveTree(to_dir, name));
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
    UniqueFd to =
        TRY(sys::OpenAt2(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, sys::kResolveBeneath));
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
    cell::EntryKind kind = cell::EntryKind::kFile;
    Finding finding = TRY(JudgeAny(from_dir, name, kind));
    if (finding.verdict == Verdict::kSafe) {
      TRY(kind == cell::EntryKind::kFile
              ? CopyFile(to_dir, name, finding)
              : CopyDirectory(to_dir, name, finding.fd.get(), path, depth + 1));
    }
    if (finding.verdict == Verdict::kSkip) Warn(path, finding);
    return Ok();
  }

  Snapshot& out_;
  const SnapshotBounds& bounds_;
  std::size_t looked_at_ = 0;
};

}  // namespace

Result<Snapshot> SnapshotAgentDirectory(int agent_dir_fd, int target_dir_fd,
                                        const SnapshotBounds& bounds) {
  Snapshot snapshot;
  Copier copier(snapshot, bounds);
  for (const AllowedEntry& allowed : kAgentEntries)
    TRY(copier.CopyTop(agent_dir_fd, target_dir_fd, allowed)
            .With(Text("snapshot of agent entry '", allowed.name, "'")));
  TRY(sys::ChangeMode(target_dir_fd, 0555));
  return snapshot;
}

}  // namespace taskcell::mounts
