#include "launcher/native/cell.h"

#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/cgroup/layout.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/cgroup/scope.h"
#include "launcher/native/child.h"
#include "launcher/native/handover.h"
#include "launcher/native/mount_source.h"
#include "launcher/native/namespace_fault.h"
#include "launcher/native/source_walk.h"
#include "launcher/native/stage.h"
#include "launcher/sys/file.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

// A cell's child that is under way: the namespaces are there, and it is making the rest of the
// cell.
class Build {
 public:
  // Clones the child, into the cgroup `cgroup_fd` or (-1) none, and writes its id maps.
  // Waiting ends as soon as `stop_fd` is readable.
  static Result<Build> Start(ChildOrders orders, int cgroup_fd, int stop_fd);

  // Hands the cgroup over.
  void Give(const cgroup::RunCgroup& cgroup, bool with_unified);
  // After Give: waits until the child runs taskcell-init.
  Status Finish();
  // There is no cgroup: waits until the child has made everything else.
  Status Try();

  // After one of these failed: whether it was for want of a mount call that mount(2) can stand in
  // for.
  bool lacks_mount_calls() const { return lacks_mount_calls_; }

  sys::Child& child() { return child_; }
  bool proc_is_subset() const { return proc_is_subset_; }
  bool keyring_stays() const { return keyring_stays_; }

 private:
  Build(sys::Child child, UniqueFd channel, UniqueFd reports, int stop_fd)
      : child_(std::move(child)),
        channel_(std::move(channel)),
        reports_(std::move(reports)),
        stop_fd_(stop_fd) {}
  Status AwaitReport() const;
  Status ReadReports(bool trial);

  sys::Child child_;
  UniqueFd channel_;
  UniqueFd reports_;
  int stop_fd_;
  Status handed_ = Ok();
  bool proc_is_subset_ = false;
  bool keyring_stays_ = false;
  bool lacks_mount_calls_ = false;
};

// A hard limit below the job's could not be raised by init, which has no capability.
Status CheckDescriptorLimit(uint64_t wanted, cell::JobStdio stdio) {
  constexpr uint64_t kOwn = 128;  // what making a cell takes, with a few mounts
  uint64_t highest = TRY(sys::ResourceLimit(RLIMIT_NOFILE));
  if (highest >= std::max(wanted, kOwn)) return Ok();
  std::string text =
      Text("the hard limit on open descriptors here (RLIMIT_NOFILE, `ulimit -Hn`) is ", highest,
           ", below the ");
  if (highest < kOwn) {
    text += Text(kOwn, " that making a cell takes: let");
  } else {
    // Only the command's own user has the option.
    text +=
        Text(wanted, " the cell is to have: ",
             stdio == cell::JobStdio::kInherit ? "ask for at most that many (--nofile), or " : "",
             "let");
  }
  text += " whoever started this raise it (LimitNOFILE= of a systemd unit)";
  return Error(Kind::kUnsupported, std::move(text));
}

// A file in memory that holds `filter`, for init to read.
Result<UniqueFd> HoldFilter(const std::string& filter) {
  UniqueFd file = TRY(sys::MakeMemfd("filter", 0));
  TRY(sys::WriteAll(file.get(), filter));
  return sys::Open(Text("/proc/self/fd/", file.get()), O_RDONLY);  // from its beginning
}

Status CheckFileSizeLimit(uint64_t wanted) {
  uint64_t highest = TRY(sys::ResourceLimit(RLIMIT_FSIZE));
  if (highest >= wanted) return Ok();
  return Error(Kind::kUnsupported,
               Text("the hard limit on the size of a file here (RLIMIT_FSIZE, `ulimit -Hf`) is ",
                    highest, ", below the ", wanted,
                    " the cell is to have: ask for at most that many (--file-size), or let whoever "
                    "started this raise it (LimitFSIZE= of a systemd unit)"));
}

// A job's core limit is 1 since the kernel asks a handler behind a pipe also where it is 0. A hard
// limit of 0 can be raised by root alone, and here.
Status CheckCoreLimit() {
  constexpr char kPattern[] = "/proc/sys/kernel/core_pattern";
  constexpr std::size_t kMaxPatternBytes = 4096;
  if (TRY(sys::ResourceLimit(RLIMIT_CORE)) >= cell::kCoreBytes) return Ok();
  if (sys::SetResourceLimit(RLIMIT_CORE, cell::kCoreBytes).ok()) return Ok();
  if (!TRY(sys::ReadFile(AT_FDCWD, kPattern, kMaxPatternBytes)).starts_with('|')) return Ok();
  return Error(
      Kind::kUnsupported,
      Text("the hard limit on core dumps here (RLIMIT_CORE, `ulimit -Hc`) is 0, with which "
           "the kernel still gives a crash to the handler of ",
           kPattern,
           "; with 1 it does not: let whoever started this have 1 or more (LimitCORE= of a "
           "systemd unit, `core` in limits.conf(5))"));
}

// Here, where the caller's own groups and capabilities still hold and no limit of the cell does.
// The child makes its root meanwhile: nothing but taskcell-init has run in it before this is over.
Status CheckRoot(const cell::CellPlan& plan, const OutsideIds& outside, const sigset_t* mask) {
  if (plan.root != cell::RootKind::kRootfs) return Ok();
  std::optional<sys::WithSignalMask> interruptible;  // a file system may not answer
  if (mask != nullptr) interruptible.emplace(*mask);
  UniqueFd root = TRY(PinRootDirectory(plan));
  return CheckRootDirectory(root.get(), plan.root_source, outside).With("root directory");
}

Result<Build> Build::Start(ChildOrders orders, int cgroup_fd, int stop_fd) {
  sys::Pipe report = TRY(sys::MakePipe());
  sys::SocketPair channel = TRY(sys::MakePacketPair());
  orders.report = report.write_end.get();
  orders.channel = channel.second.get();
  Result<sys::Cloned> cloned = sys::CloneProcess(kNamespaces, cgroup_fd);
  if (!cloned.ok()) {
    Error error = std::move(cloned).error();
    bool by_cgroup = error.err != ENOSPC && error.err != EPERM && error.err != EAGAIN;
    if (cgroup_fd >= 0 && by_cgroup) return error;
    return ExplainNamespaceFault(std::move(error));
  }
  sys::PopulateNextPages();
  if (cloned->in_child) {
    channel.first.Reset();
    report.read_end.Reset();
    RunChild(orders);
  }
  Build build(std::move(cloned->child), std::move(channel.first), std::move(report.read_end),
              stop_fd);
  if (orders.outside.way == MapWay::kOwn) return build;
  Status written = WriteIdMaps(build.child_.pid(), *orders.plan, orders.outside);
  if (!written.ok()) return ExplainNamespaceFault(std::move(written).error().With("id maps"));
  TRY(TellMapsWritten(build.channel_.get()));
  return build;
}

void Build::Give(const cgroup::RunCgroup& cgroup, bool with_unified) {
  handed_ = HandOver(channel_.get(), cgroup, with_unified);
  channel_.Reset();
}

Status Build::Finish() {
  // A child that is gone says why; that it does not listen is only what comes of it.
  TRY(ReadReports(!handed_.ok()));
  return std::move(handed_);
}

Status Build::Try() {
  channel_.Reset();
  return ReadReports(true);
}

// EPERM is what a filter of an outer container answers; it may as well be meant, which trying
// mount(2) shows.
bool IsForWantOfMountCalls(const ChildReport& report) {
  constexpr Stage kMounting[] = {Stage::kSources, Stage::kRoot, Stage::kProc, Stage::kDevices,
                                 Stage::kMounts};
  bool mounting =
      std::find(std::begin(kMounting), std::end(kMounting), report.stage) != std::end(kMounting);
  return mounting && (report.err == ENOSYS || report.err == EPERM);
}

// What it does may take its time: a file system that does not answer has no limit of its own.
Status Build::AwaitReport() const {
  std::array<struct pollfd, 2> wait = {{{reports_.get(), POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
  TRY(sys::PollAll(wait, -1));
  if (wait[0].revents != 0 || wait[1].revents == 0) return Ok();
  return Error(Kind::kSystem, "the cell was no longer wanted while it was made", ECANCELED)
      .Coded("stopped");
}

// Reads the child's reports until it executed taskcell-init or gave up.
Status Build::ReadReports(bool trial) {
  bool ready = false;
  while (true) {
    ChildReport report;
    std::span<char> bytes(reinterpret_cast<char*>(&report), sizeof report);
    TRY(AwaitReport());
    std::size_t got = TRY(sys::Read(reports_.get(), bytes));
    if (got == 0) break;
    if (got != sizeof report) return Error(Kind::kInternal, "a cut report from the cell's child");
    switch (report.type) {
      case ChildReport::Type::kProcIsSubset:
        proc_is_subset_ = true;
        break;
      case ChildReport::Type::kKeyringStays:
        keyring_stays_ = true;
        break;
      case ChildReport::Type::kReady:
        ready = true;
        break;
      case ChildReport::Type::kFailure: {
        Error error = ErrorOf(report);
        lacks_mount_calls_ = IsForWantOfMountCalls(report);
        // What the plan or its sources do wrong is not for the namespaces to explain.
        bool denied = error.kind == Kind::kDenied && report.stage != Stage::kSources;
        return denied ? ExplainNamespaceFault(std::move(error)) : std::move(error);
      }
    }
  }
  if (trial && !ready) return Error(Kind::kSystem, "the cell's child died before it was set up");
  return Ok();
}

// No clone3 (Linux 5.3) or none with a cgroup (5.7), or a filter that forbids it. EPERM may mean
// the namespaces as well, which trying without the cgroup shows.
bool MayLackBirthInCgroup(const Error& error) {
  constexpr int kLacking[] = {ENOSYS, EPERM, E2BIG, EINVAL};
  return std::find(std::begin(kLacking), std::end(kLacking), error.err) != std::end(kLacking);
}

Result<cgroup::RunCgroup> MakeCgroup(const CellOrders& orders) {
  return cgroup::RunCgroup::Make(orders.plan->run_id, orders.plan->limits, orders.cgroup_parent);
}

// On the unified hierarchy a user's session hands nothing on, but the user's manager has something
// to give.
Result<cgroup::RunCgroup> MakeUnified(const CellOrders& orders) {
  Result<cgroup::RunCgroup> made = MakeCgroup(orders);
  bool by_place = !made.ok() && made.error().code == cgroup::kUnenforced;
  if (!by_place || !orders.cgroup_parent.empty()) return made;
  Status entered = cgroup::EnterOwnScope();
  if (!entered.ok()) return cgroup::WithoutScope(std::move(made).error(), entered.error());
  return MakeCgroup(orders);
}

}  // namespace

Result<NativeCell> NativeCell::Make(CellOrders orders) {
  TRY(sys::AssertSingleThread());
  TRY(cell::CheckPlan(*orders.plan));
  ChildOrders child;
  child.plan = orders.plan;
  child.detached = orders.detached;
  child.outside = TRY(ChooseOutsideIds(orders.user_namespace, *orders.plan));
  TRY(CheckDescriptorLimit(orders.plan->limits.nofile, orders.stdio));
  TRY(CheckCoreLimit());
  if (orders.plan->limits.file_bytes != 0) TRY(CheckFileSizeLimit(orders.plan->limits.file_bytes));
  child.init = orders.init;
  child.gate = orders.gate.get();
  child.signal_mask = orders.signal_mask;
  UniqueFd filter;
  if (!orders.plan->filter.empty()) filter = TRY(HoldFilter(orders.plan->filter));
  child.filter = filter.valid() ? filter.get() : -1;
  child.stdio = orders.stdio;
  child.output = orders.output;
  child.errors = orders.errors;
  // Into a cgroup of the unified hierarchy the child is born (moving there would take the kernel
  // milliseconds). One on v1 it enters by itself, so it is made while the child makes the rest.
  // What cannot be read now is for RunCgroup to tell.
  Result<bool> on_v1 = cgroup::ReadAllOnV1();
  bool afterwards = on_v1.ok() && on_v1.value();
  std::optional<Result<cgroup::RunCgroup>> cgroup;
  if (!afterwards) cgroup.emplace(MakeUnified(orders));
  int cgroup_fd = cgroup && cgroup->ok() ? cgroup->value().clone_fd() : -1;
  Result<Build> build = Build::Start(child, cgroup_fd, orders.stop_fd);
  if (!build.ok() && cgroup_fd >= 0 && MayLackBirthInCgroup(build.error())) {
    cgroup_fd = -1;  // the child walks in by itself
    build = Build::Start(child, cgroup_fd, orders.stop_fd);
  }
  if (!build.ok()) {
    if (std::optional<OutsideIds> other = OtherWay(orders.user_namespace, child.outside)) {
      child.outside = *other;
      build = Build::Start(child, cgroup_fd, orders.stop_fd);
    }
  }
  if (!build.ok()) return std::move(build).error();
  if (afterwards) cgroup.emplace(MakeCgroup(orders));
  if (cgroup->ok()) build->Give(cgroup->value(), cgroup_fd < 0);
  TRY(CheckRoot(*orders.plan, child.outside, orders.signal_mask));
  Status finished = cgroup->ok() ? build->Finish() : build->Try();
  if (!finished.ok() && build->lacks_mount_calls()) {
    child.classic_mounts = true;
    build = TRY(Build::Start(child, cgroup_fd, orders.stop_fd));
    if (cgroup->ok()) build->Give(cgroup->value(), cgroup_fd < 0);
    finished = cgroup->ok() ? build->Finish() : build->Try();
  }
  TRY(std::move(finished));
  if (!cgroup->ok()) return std::move(*cgroup).error();
  return NativeCell(std::move(build->child()), std::move(*cgroup).value(), child.outside,
                    build->proc_is_subset(), build->keyring_stays());
}

}  // namespace taskcell::native
