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
#include "probe/mounts/agent_entries.h"
#include "probe/mounts/inspector.h"
#include "probe/mounts/shown_links.h"
#include "probe/mounts/snapshot_meter.h"

namespace taskcell::probe::audit {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NONBLOCK;

// A path, and in whom it was trusted on the way.
struct Pinned {
  mounts::Trust trust;
  mounts::PinnedPath path;
};

// By default root trusts in whoever owns what is pinned; but with kBind, where the owner is what is
// asked about, in root alone.
Result<Pinned> Pin(const AuditRequest& request) {
  Pinned pinned;
  pinned.trust = mounts::TrustIn(request.owner.value_or(::geteuid()));
  pinned.path = TRY(mounts::PinPath(request.directory, pinned.trust));
  const uid_t owner = TRY(sys::Stat(pinned.path.fd.get())).st_uid;
  const bool is_asked = request.owner || ::geteuid() != 0 || request.policy == Policy::kBind;
  if (is_asked || owner == 0) return pinned;
  pinned.trust = mounts::TrustIn(owner);
  pinned.path = TRY(mounts::PinPath(request.directory, pinned.trust));
  if (TRY(sys::Stat(pinned.path.fd.get())).st_uid == owner) return pinned;
  return Error(Kind::kViolation,
               Text("'", Printable(request.directory), "' was exchanged for another's"), ESTALE);
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

// One audit, from the pinned path to the report. Shared, since a thread that hangs may outlive it.
class Auditor : public std::enable_shared_from_this<Auditor> {
 public:
  Auditor(const AuditRequest& request, mounts::Trust trust, uint64_t seed)
      : request_(request),
        trust_(trust),
        list_(request.policy),
        entries_(list_),
        links_(seed),
        meter_(request.snapshot_bounds) {}

  Result<Report> Run(const mounts::PinnedPath& pinned) {
    report_.directory = request_.directory;
    report_.policy = request_.policy;
    report_.owner = trust_.owner;
    report_.resolved = pinned.path;
    for (const mounts::Concern& concern : pinned.concerns)
      list_.Add(CodeOf(concern.what), concern.path, Text(concern.found, "; ", concern.fix));
    for (const mounts::RemoteLevel& level : pinned.remote)
      list_.Add(Code::kForeignContent, level.path, Text(level.type, ", on the way"));
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
    inspector.JudgeItself(pin, info, ".");
    if (S_ISDIR(info.stx_mode) && request_.policy != Policy::kStrict)
      inspector.JudgeUnentered(pin, ".");
    if (S_ISREG(info.stx_mode) && info.stx_nlink > 1)
      list_.Add(Code::kHardLinkLeaves, ".", Text(info.stx_nlink, " links"));
    return Ok();
  }

  Ruler RulerOf() const {
    Ruler ruler;
    ruler.trust = trust_;
    ruler.has_proc = sys::IsProc();
    ruler.all_attributes = request_.all_attributes || request_.policy == Policy::kAgent;
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
    WalkOptions options = request_.walk;
    if (options.max_entries != UINT64_MAX)
      options.max_entries -= std::min(options.max_entries, report_.looked_at);
    WalkResult walked = TRY(Walk(std::move(own), path, visitor, options));
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
    if (!links_.needs_second_walk() || !MayWalkAgain()) {
      links_.AddFindings(list_);
      return Ok();
    }
    if (list_.counts()[static_cast<std::size_t>(Code::kTooMany)] > 0) links_.GiveUp();
    const uint64_t looked_at = std::exchange(report_.looked_at, 0);  // not a second time
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

  // SKILLS or wiki.
  struct Tree {
    std::string name;
    UniqueFd fd;
    std::shared_ptr<FindingList> links;  // what was found of its symbolic links
  };

  Status AuditAgent(int pin) {
    Result<UniqueFd> opened = OpenTop(pin);
    if (!opened.ok()) return Ok();  // said there
    top_ = std::move(opened).value();
    const std::set<std::string_view> listed = TRY(mounts::ListedEntries(top_.get()));
    for (const mounts::AllowedEntry& allowed : mounts::kAgentEntries) {
      std::string name(allowed.name);
      mounts::Finding found = TRY(mounts::JudgeAllowed(top_.get(), allowed, listed));
      ++report_.looked_at;
      entries_.Add(name, found);
      if (found.verdict != mounts::Verdict::kSafe) continue;
      TRY(JudgeEntry(found.fd.get(), name));
      if (allowed.kind != cell::EntryKind::kDirectory) {
        const SnapshotMeter::Mark before = meter_.Now();
        meter_.Count(found.size);
        if (LeaveOutOverLimit(name, "the agent directory cannot be mounted"))
          meter_.ReturnTo(before);
        if (IsOfThePrompt(name)) TRY(entries_.JudgePersona(name, found));
        continue;
      }
      trees_.push_back({name, std::move(found.fd), nullptr});
    }
    return AuditTrees();
  }

  Status AuditTrees() {
    std::vector<std::string> names;
    for (const Tree& tree : trees_) {
      const SnapshotMeter::Mark before = meter_.Now();
      meter_.Count(0);  // itself
      TRY(AuditSubtree(tree));
      if (LeaveOutOverLimit(tree.name, "it is left out whole")) meter_.ReturnTo(before);
      names.push_back(tree.name);
    }
    TRY(AuditLinks());
    return NameLinks(names);
  }

  // Where links lead, now that it is known what else is left out; with Subtree::kSkip again when a
  // directory was left out for them.
  Status AuditLinks() {
    do {
      for (Tree& tree : trees_) {
        if (!MayWalkAgain()) break;
        if (meter_.has_links() && (tree.links == nullptr || entries_.IsSafe(tree.name)))
          TRY(FindLinks(tree));
      }
    } while (request_.subtree == mounts::Subtree::kSkip && entries_.SkipUnsafe());
    for (const Tree& tree : trees_) {
      if (tree.links != nullptr) Merge(*tree.links);
    }
    return Ok();
  }

  Status FindLinks(Tree& tree) {
    tree.links = std::make_shared<FindingList>(Policy::kAgent);
    std::optional<Shown> shown;
    if (entries_.IsSafe(tree.name)) {
      shown.emplace();
      shown->entry = [safe = entries_.SafeOnes()](std::string_view name) {
        return safe.contains(name);
      };
      shown->linked_file = [this](const struct statx& info) { return CopiesLinked(info); };
    }
    const uint64_t looked_at = std::exchange(report_.looked_at, 0);  // not a second time
    TRY(WalkWith(tree.fd.get(), tree.name,
                 Held(std::make_shared<LinkInspector>(
                     top_.get(), std::move(shown), *tree.links,
                     [this](const std::string& path) { entries_.NoteUnsafe(path); }))));
    report_.looked_at = looked_at;
    return Ok();
  }

  // Of a first walk that did not come to its end there is nothing more to be had.
  bool MayWalkAgain() const {
    return !report_.abandoned && list_.counts()[static_cast<std::size_t>(Code::kTimeout)] == 0;
  }

  void Merge(FindingList& from) {
    std::array<uint64_t, kCodes> rest = from.counts();
    for (Finding& finding : from.Take()) {
      --rest[static_cast<std::size_t>(finding.code)];
      list_.Add(finding.code, std::move(finding.path), std::move(finding.detail));
    }
    for (std::size_t i = 0; i < kCodes; ++i) list_.Count(static_cast<Code>(i), rest[i]);
  }

  // True where the entry `name`, counted last, passed a bound of the snapshot; `effect` is what
  // comes of it.
  bool LeaveOutOverLimit(const std::string& name, std::string_view effect) {
    const std::string excess = meter_.Excess();
    if (excess.empty()) return false;
    entries_.LeaveOut(name, Code::kOverLimit, Text("with it there is ", excess, ": ", effect));
    return true;
  }

  static bool IsOfThePrompt(std::string_view name) {
    return name == "SOUL.md" || name == "IDENTITY.md";
  }

  Status JudgeEntry(int fd, const std::string& name) {
    struct statx info;
    TRY(sys::StatEntry(fd, "", AT_STATX_DONT_SYNC, info));
    Inspector(top_.get(), RulerOf(), list_, links_).JudgeItself(fd, info, name);
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

  Status AuditSubtree(const Tree& tree) {
    Ruler ruler = RulerOf();
    ruler.meter = &meter_;
    ruler.copies_linked = [this](const struct statx& info) { return CopiesLinked(info); };
    ruler.leaves_out = [this](const std::string& path) { entries_.NoteUnsafe(path); };
    return WalkBelow(tree.fd.get(), tree.name, std::move(ruler));
  }

  Standing StandingNow() const {
    if (entries_.AreAnySkipped()) return Standing::kUnsafe;
    return StandingOf(report_.counts, request_.policy);
  }

  // What is found about the directory itself is about everything in it.
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
    const bool knows_the_worst = KnowsTheWorst(report_);
    report_.findings = entries_.ShareOut(std::move(report_.findings));
    report_.entries = entries_.Take();
    if (!request_.safe) return;
    if (request_.policy == Policy::kBind && report_.standing == Standing::kSafe) request_.safe("");
    if (knows_the_worst) NameSafeEntries();
  }

  const AuditRequest request_;
  const mounts::Trust trust_;
  FindingList list_;
  AgentEntries entries_;
  LinkSets links_;
  SnapshotMeter meter_;
  std::once_flag scanned_;
  std::optional<mounts::LinkScan> scan_;
  std::vector<Tree> trees_;
  UniqueFd top_;
  Report report_;
};

}  // namespace

Result<Report> Audit(const AuditRequest& request) {
  const Pinned pinned = TRY(Pin(request));
  auto auditor = std::make_shared<Auditor>(request, pinned.trust, TRY(RandomSeed()));
  return auditor->Run(pinned.path);
}

}  // namespace taskcell::probe::audit
