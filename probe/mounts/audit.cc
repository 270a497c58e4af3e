#include "probe/mounts/audit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/mounts/component.h"
#include "launcher/mounts/link_scan.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "launcher/sys/random.h"
#include "probe/mounts/inspector.h"
#include "probe/mounts/snapshot_meter.h"

namespace taskcell::probe::audit {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NONBLOCK;

Result<mounts::Trust> TrustOf(const AuditRequest& request) {
  if (request.owner) return mounts::TrustIn(*request.owner);
  if (::geteuid() != 0) return mounts::TrustIn(::geteuid());
  mounts::PinnedPath pinned = TRY(mounts::PinPath(request.directory, {}));
  return mounts::TrustIn(TRY(sys::Stat(pinned.fd.get())).st_uid);
}

Code CodeOf(mounts::Concern::What what) {
  switch (what) {
    case mounts::Concern::What::kOwner:
      return Code::kAncestorOwner;
    case mounts::Concern::What::kWritable:
      return Code::kAncestorWritable;
    case mounts::Concern::What::kLink:
      return Code::kAncestorLink;
  }
  return Code::kAncestorOwner;
}

Result<uint64_t> RandomSeed() {
  std::array<unsigned char, sizeof(uint64_t)> bytes;
  TRY(sys::FillRandom(bytes));
  uint64_t seed = 0;
  std::memcpy(&seed, bytes.data(), sizeof seed);
  return seed;
}

Standing StandingOf(const std::array<uint64_t, kCodes>& counts, Policy policy) {
  bool unknown = false;
  for (std::size_t i = 0; i < kCodes; ++i) {
    if (counts[i] == 0) continue;
    Severity severity = SeverityOf(static_cast<Code>(i), policy);
    if (severity == Severity::kError || severity == Severity::kWarning) return Standing::kUnsafe;
    unknown = unknown || severity == Severity::kUnknown;
  }
  return unknown ? Standing::kUnknown : Standing::kSafe;
}

bool AreNotes(const std::vector<Finding>& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::kNote; });
}

std::string_view FirstComponent(std::string_view path) { return path.substr(0, path.find('/')); }

// One audit, from the pinned path to the report. Shared, since a thread that hangs may outlive it.
class Auditor : public std::enable_shared_from_this<Auditor> {
 public:
  Auditor(const AuditRequest& request, mounts::Trust trust, uint64_t seed)
      : request_(request),
        trust_(trust),
        list_(request.policy),
        links_(seed),
        meter_(request.snapshot_bounds) {}

  Result<Report> Run() {
    report_.directory = request_.directory;
    report_.policy = request_.policy;
    mounts::PinnedPath pinned = TRY(mounts::PinPath(request_.directory, trust_));
    report_.resolved = pinned.path;
    for (const mounts::Concern& concern : pinned.concerns)
      list_.Add(CodeOf(concern.what), concern.path, Text(concern.found, "; ", concern.fix));
    TRY(JudgeTop(pinned.fd.get()));
    switch (request_.policy) {
      case Policy::kBind:
        break;
      case Policy::kStrict:
        TRY(AuditTree(pinned.fd.get()));
        break;
      case Policy::kAgent:
        TRY(AuditAgent(pinned.fd.get()));
        break;
    }
    Finish();
    return std::move(report_);
  }

 private:
  Status JudgeTop(int pin) {
    struct statx info;
    TRY(sys::StatEntry(pin, "", AT_STATX_DONT_SYNC, info));
    if (request_.policy != Policy::kBind && !S_ISDIR(info.stx_mode)) {
      return Error(Kind::kUsage,
                   Text("'", Printable(request_.directory), "' is ",
                        mounts::KindName(info.stx_mode), "; only --policy bind takes one"),
                   ENOTDIR);
    }
    if (!S_ISDIR(info.stx_mode) && !S_ISREG(info.stx_mode))
      list_.Add(S_ISFIFO(info.stx_mode)   ? Code::kFifo
                : S_ISSOCK(info.stx_mode) ? Code::kSocket
                                          : Code::kDevice,
                ".", std::string(mounts::KindName(info.stx_mode)));
    Inspector inspector(pin, RulerOf(), list_, links_);
    inspector.JudgeFileSystem(info);
    inspector.JudgeAccess(pin, info, ".");
    return Ok();
  }

  Ruler RulerOf() const {
    Ruler ruler;
    ruler.trust = trust_;
    ruler.has_proc = sys::IsProc();
    return ruler;
  }

  Result<UniqueFd> OpenTop(int pin) {
    Result<UniqueFd> opened = sys::OpenNoFollow(pin, ".", kDirectory);
    if (!opened.ok()) list_.Add(Code::kUnreadable, ".", opened.error().text);
    return opened;
  }

  Status AuditTree(int pin) {
    Result<UniqueFd> opened = OpenTop(pin);
    if (!opened.ok()) return Ok();  // said there
    top_ = std::move(opened).value();
    Ruler ruler = RulerOf();
    // Whoever can exchange the directory decides about all that is in it.
    if (StandingOf(list_.counts(), request_.policy) == Standing::kSafe)
      ruler.safe_file = request_.safe;
    TRY(WalkBelow(top_.get(), "", std::move(ruler)));
    return NameLinks({""});
  }

  // Walks `fd`, whose path is `path`; the inspector and what it writes to live as long as a thread
  // of the walk may.
  Status WalkBelow(int fd, const std::string& path, Ruler ruler) {
    auto inspector = std::make_shared<Inspector>(top_.get(), std::move(ruler), list_, links_);
    return WalkWith(fd, path, Held(inspector));
  }

  Status WalkWith(int fd, const std::string& path, const std::shared_ptr<Visitor>& visitor) {
    UniqueFd own = TRY(sys::OpenNoFollow(fd, ".", kDirectory));
    WalkResult walked = TRY(Walk(std::move(own), path, visitor, request_.walk));
    report_.looked_at += walked.entries;
    report_.abandoned = report_.abandoned || walked.abandoned;
    return Ok();
  }

  // The same pointer, which keeps this auditor alive too.
  std::shared_ptr<Visitor> Held(std::shared_ptr<Visitor> visitor) {
    struct Both {
      std::shared_ptr<Auditor> auditor;
      std::shared_ptr<Visitor> visitor;
    };
    auto both = std::make_shared<Both>(Both{shared_from_this(), std::move(visitor)});
    return {both, both->visitor.get()};
  }

  // After all walks: what is to be said of files with several names.
  Status NameLinks(const std::vector<std::string>& paths) {
    if (report_.abandoned || !links_.needs_second_walk()) {
      links_.AddFindings(list_);
      return Ok();
    }
    const uint64_t looked_at = report_.looked_at;
    auto namer = std::make_shared<LinkNamer>(links_, list_);
    for (const std::string& path : paths) {
      if (path.empty()) {
        TRY(WalkWith(top_.get(), path, Held(namer)));
        continue;
      }
      Result<UniqueFd> again = mounts::OpenComponent(top_.get(), path, kDirectory);
      if (again.ok()) TRY(WalkWith(again->get(), path, Held(namer)));
    }
    report_.looked_at = looked_at;
    return Ok();
  }

  Status AuditAgent(int pin) {
    Result<UniqueFd> opened = OpenTop(pin);
    if (!opened.ok()) return Ok();  // said there
    top_ = std::move(opened).value();
    const std::set<std::string_view> listed = TRY(mounts::ListedEntries(top_.get()));
    std::vector<std::string> directories;
    std::vector<UniqueFd> fds;
    for (const mounts::AllowedEntry& allowed : mounts::kAgentEntries) {
      std::string name(allowed.name);
      mounts::Finding found = TRY(mounts::JudgeAllowed(top_.get(), allowed, listed));
      ++report_.looked_at;
      report_.entries.push_back(
          {name, found.verdict, std::string(Name(found.reason)), std::move(found.note)});
      if (found.verdict == mounts::Verdict::kSkip) {
        list_.Add(Code::kEntrySkipped, name,
                  Text(report_.entries.back().reason, ": ", report_.entries.back().note));
      }
      if (found.verdict != mounts::Verdict::kSafe) continue;
      TRY(JudgeEntry(found.fd.get(), name));
      if (allowed.kind != cell::EntryKind::kDirectory) {
        const SnapshotMeter::Mark before = meter_.Now();
        meter_.Count(found.size);
        if (LeaveOutOverLimit(name, "the agent directory cannot be mounted"))
          meter_.ReturnTo(before);
        if (IsTooLongForPrompt(name, found.size))
          LeaveOut(name, Text("it has more than ", mounts::kMaxPersonaBytes,
                              " bytes, too much for a prompt: every task is refused"));
        continue;
      }
      directories.push_back(name);
      fds.push_back(std::move(found.fd));
    }
    for (std::size_t i = 0; i < fds.size(); ++i) {
      const SnapshotMeter::Mark before = meter_.Now();
      meter_.Count(0);  // itself
      TRY(AuditSubtree(fds[i].get(), directories[i]));
      if (LeaveOutOverLimit(directories[i], "it is left out whole")) meter_.ReturnTo(before);
    }
    return NameLinks(directories);
  }

  // True where the entry `name`, counted last, passed a bound of the snapshot; `effect` is what
  // comes of it.
  bool LeaveOutOverLimit(const std::string& name, std::string_view effect) {
    const std::string excess = meter_.Excess();
    if (excess.empty()) return false;
    LeaveOut(name, Text("with it there is ", excess, ": ", effect));
    return true;
  }

  void LeaveOut(const std::string& name, const std::string& note) {
    for (EntryReport& entry : report_.entries) {
      if (entry.name != name) continue;
      entry.verdict = mounts::Verdict::kSkip;
      entry.note = note;
      list_.Add(Code::kOverLimit, name, note);
    }
  }

  static bool IsTooLongForPrompt(std::string_view name, uint64_t size) {
    return (name == "SOUL.md" || name == "IDENTITY.md") && size > mounts::kMaxPersonaBytes;
  }

  Status JudgeEntry(int fd, const std::string& name) {
    struct statx info;
    TRY(sys::StatEntry(fd, "", AT_STATX_DONT_SYNC, info));
    Inspector(top_.get(), RulerOf(), list_, links_).JudgeAccess(fd, info, name);
    return Ok();
  }

  // Looks through SKILLS and wiki once, as the snapshot does, with the first file that has several
  // names. On any thread of the walk.
  bool CopiesLinked(const struct statx& info) {
    std::call_once(scanned_, [this] {
      const mounts::SnapshotBounds& bounds = request_.snapshot_bounds;
      Result<mounts::LinkScan> scan =
          mounts::LinkScan::Make(top_.get(), bounds.entries, bounds.depth);
      if (scan.ok()) scan_.emplace(std::move(scan).value());  // else the snapshot fails, too
    });
    return scan_ && scan_->MayBeClosed(sys::DeviceOf(info), info.stx_ino);
  }

  bool IsSafeEntry(std::string_view name) const {
    return std::any_of(report_.entries.begin(), report_.entries.end(), [name](const auto& each) {
      return each.name == name && each.verdict == mounts::Verdict::kSafe;
    });
  }

  Status AuditSubtree(int fd, const std::string& name) {
    Ruler ruler = RulerOf();
    ruler.meter = &meter_;
    ruler.copies_linked = [this](const struct statx& info) { return CopiesLinked(info); };
    ruler.may_lead_to = [this](std::string_view path) {
      return path.empty() || IsSafeEntry(FirstComponent(path));
    };
    return WalkBelow(fd, name, std::move(ruler));
  }

  // Moves every finding about what is in an allowed entry to that entry.
  void ShareOut() {
    std::vector<Finding> rest;
    for (Finding& finding : report_.findings) {
      auto entry = std::find_if(report_.entries.begin(), report_.entries.end(),
                                [first = FirstComponent(finding.path)](const EntryReport& each) {
                                  return each.name == first;
                                });
      (entry == report_.entries.end() ? rest : entry->notes).push_back(std::move(finding));
    }
    report_.findings = std::move(rest);
  }

  Standing StandingNow() const {
    for (const EntryReport& entry : report_.entries) {
      if (entry.verdict == mounts::Verdict::kSkip) return Standing::kUnsafe;
    }
    return StandingOf(report_.counts, request_.policy);
  }

  // True where all that is worse than a note was kept.
  bool KnowsTheWorst() const {
    std::array<uint64_t, kCodes> dropped = report_.counts;
    for (const Finding& finding : report_.findings)
      --dropped[static_cast<std::size_t>(finding.code)];
    return StandingOf(dropped, request_.policy) == Standing::kSafe;
  }

  // After ShareOut. What is found about the directory itself is about everything in it.
  void NameSafeEntries() const {
    if (!AreNotes(report_.findings)) return;
    for (const EntryReport& entry : report_.entries) {
      if (entry.verdict == mounts::Verdict::kSafe && AreNotes(entry.notes))
        request_.safe(entry.name);
    }
  }

  void Finish() {
    report_.counts = list_.counts();
    report_.findings = list_.Take();
    report_.left_out = std::accumulate(report_.counts.begin(), report_.counts.end(), uint64_t{0}) -
                       report_.findings.size();
    report_.standing = StandingNow();
    const bool knows_the_worst = KnowsTheWorst();
    ShareOut();
    if (!request_.safe) return;
    if (request_.policy == Policy::kBind && report_.standing == Standing::kSafe) request_.safe("");
    if (knows_the_worst) NameSafeEntries();
  }

  const AuditRequest request_;
  const mounts::Trust trust_;
  FindingList list_;
  LinkSets links_;
  SnapshotMeter meter_;
  std::once_flag scanned_;
  std::optional<mounts::LinkScan> scan_;
  UniqueFd top_;
  Report report_;
};

}  // namespace

std::string_view Name(Standing standing) {
  switch (standing) {
    case Standing::kSafe:
      return "safe";
    case Standing::kUnsafe:
      return "unsafe";
    case Standing::kUnknown:
      return "unknown";
  }
  return "";
}

Result<Report> Audit(const AuditRequest& request) {
  mounts::Trust trust = TRY(TrustOf(request));
  auto auditor = std::make_shared<Auditor>(request, trust, TRY(RandomSeed()));
  return auditor->Run();
}

}  // namespace taskcell::probe::audit
