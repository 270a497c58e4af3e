#include "launcher/native/child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/cgroup/run_cgroup.h"
#include "launcher/native/cell_root.h"
#include "launcher/native/device_tree.h"
#include "launcher/native/handover.h"
#include "launcher/native/host_root.h"
#include "launcher/native/mount_source.h"
#include "launcher/native/proc_tree.h"
#include "launcher/native/stage.h"
#include "launcher/native/stream_files.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/signals.h"

namespace taskcell::native {
namespace {

class Child {
 public:
  explicit Child(const ChildOrders& orders) : orders_(orders), plan_(*orders.plan) {}

  // Does every stage; `stage` is the one that failed, or the last.
  Status Run(Stage& stage);
  void Tell(const ChildReport& report);

 private:
  Status StayWithParent();
  Status WaitForIdMaps();
  Status EnterCgroup();
  Status EnterCgroupBeforeIds() { return KeepsIds() ? Ok() : EnterCgroup(); }
  Status EnterCgroupLast() { return KeepsIds() ? EnterCgroup() : Ok(); }
  Status StopPropagation();
  Status TakeSources();
  Status BecomeInsideIds();
  void LeaveKeyring();
  Status MakeRoot();
  Status MakeProc();
  Status MakeDevices() { return MakeDeviceTree(*root_, devices_); }
  Status AttachPlanned();
  Status WriteSysctls() { return WriteNamespaceSysctls(*proc_); }
  Status StartNetwork() { return sys::SetLoopbackUp(); }
  Status SetName() { return sys::SetHostname(plan_.hostname); }
  Status Pivot() { return sys::PivotInto(root_->fd()); }
  Status DropPrivileges();
  Status CheckRoot();
  Status CheckAccess();
  Status ArrangeDescriptors();
  Status Exec();

  Status CheckUse(int dir_fd, const std::string& path, const std::string& source, int mode) const;
  const DetachedMount* FindDetached(const std::string& target) const;  // nullptr: none
  std::string SourceOf(const std::string& target) const;
  bool KeepsIds() const { return orders_.outside.way == MapWay::kOwn; }

  const ChildOrders& orders_;
  const cell::CellPlan& plan_;
  std::optional<Handover> cgroup_;  // none: only to be tried
  std::vector<DeviceNode> devices_;
  std::vector<MountSource> mounts_;
  std::vector<StreamFile> streams_;
  std::optional<HostRoot> host_root_;
  std::optional<MountSource> root_directory_;
  std::optional<CellRoot> root_;
  std::optional<ProcTree> proc_;
};

void Child::Tell(const ChildReport& report) {
  std::string_view bytes(reinterpret_cast<const char*>(&report), sizeof report);
  (void)sys::WriteAll(orders_.report, bytes);  // ignoring: without a reader the parent is gone
}

// Before anything that may wait: what the parent's death ends is this process, wherever it is.
Status Child::StayWithParent() {
  TRY(sys::SetParentDeathSignal(SIGKILL));
  // It may have died before; then nobody reads the reports.
  struct pollfd reader = {orders_.report, 0, 0};
  TRY(sys::PollAll({&reader, 1}, 0));
  if ((reader.revents & POLLERR) != 0) sys::ExitNow(1);
  return Ok();
}

Status Child::WaitForIdMaps() {
  TRY(StayWithParent());
  if (KeepsIds()) {
    TRY(WriteOwnIdMaps(plan_, orders_.outside));
  } else if (!TRY(AwaitMaps(orders_.channel))) {
    sys::ExitNow(1);  // the parent is gone
  }
  // Not earlier: /proc/<pid>/uid_map of a process that is not dumpable belongs to root.
  return sys::SetNotDumpable();
}

// A process may move itself only while its ids are those of the cgroup's owner. Where they stay the
// same it is done last: till then the parent has made the cgroup, and nothing had to wait. What
// was made here so far (mounts, not a page of the job's) counts as the parent's memory.
Status Child::EnterCgroup() {
  // A real-time process would stand above the limit on processor time.
  TRY(sys::LeaveRealTime());
  cgroup_ = TRY(ReceiveHandover(orders_.channel));
  if (cgroup_) {
    for (const UniqueFd& entry : cgroup_->entries) TRY(cgroup::RunCgroup::Enter(entry.get()));
  }
  // Only now, from inside: a namespace made by clone3 would have the caller's cgroup for its root.
  // The clocks' offsets are 0; a kernel without time namespaces says EINVAL.
  Status both = sys::Unshare(CLONE_NEWCGROUP | CLONE_NEWTIME);
  if (both.ok() || both.error().err != EINVAL) return both;
  return sys::Unshare(CLONE_NEWCGROUP);
}

Status Child::StopPropagation() {
  TRY(sys::MakeAllMountsPrivate());
  if (!orders_.classic_mounts) return Ok();
  std::string stage = TRY(FindStage(plan_));
  return sys::UseClassicMounts(stage, plan_.uid, plan_.gid);
}

// Everything that is opened on the host is opened here, still under the caller's own kernel ids.
Status Child::TakeSources() {
  devices_ = TRY(TakeDevices());
  // Otherwise the job gets pipes or a terminal made for it, and these stay with init.
  if (orders_.stdio == cell::JobStdio::kInherit) streams_ = TRY(GuardStreams(plan_));
  MountTable mounts = TRY(MountTable::Read());
  if (plan_.root == cell::RootKind::kHost) {
    host_root_ = TRY(TakeHostRoot(plan_, mounts));
  } else {
    root_directory_ = TRY(TakeRootDirectory(plan_, mounts));
  }
  for (const cell::PlannedMount& mount : plan_.mounts) {
    const DetachedMount* detached = FindDetached(mount.target);
    mounts_.push_back(TRY(detached == nullptr ? TakePlannedMount(mount, mounts)
                                              : TakeDetachedMount(mount, *detached)));
  }
  return Ok();
}

const DetachedMount* Child::FindDetached(const std::string& target) const {
  if (orders_.detached == nullptr) return nullptr;
  for (const DetachedMount& each : *orders_.detached) {
    if (each.target == target) return &each;
  }
  return nullptr;
}

std::string Child::SourceOf(const std::string& target) const {
  for (const cell::PlannedMount& mount : plan_.mounts) {
    if (mount.target == target) return mount.source;
  }
  return {};
}

Status Child::BecomeInsideIds() {
  if (!KeepsIds()) {
    TRY(sys::SetGroups({}));
    TRY(sys::SetIds(plan_.uid, plan_.gid));
    // A change of ids takes both back.
    TRY(sys::SetNotDumpable());
    TRY(StayWithParent());
  }
  LeaveKeyring();
  return Ok();
}

// As the cell's own kernel id, whose key it counts as until the cell is gone. A cell whose id has
// as many keys as it may keeps the caller's keyring, which its filter keeps it from using.
void Child::LeaveKeyring() {
  Status left = sys::JoinNewSessionKeyring();
  if (left.ok() || left.error().err == ENOSYS) return;  // ENOSYS: a kernel without keys
  ChildReport note;
  note.type = ChildReport::Type::kKeyringStays;
  Tell(note);
}

Status Child::MakeRoot() {
  root_ = host_root_ ? TRY(CellRoot::FromHost(std::move(*host_root_)))
                     : TRY(CellRoot::FromDirectory(std::move(*root_directory_)));
  return Ok();
}

Status Child::MakeProc() {
  proc_ = TRY(MakeProcTree(*root_, plan_.proc_is_subset));
  if (proc_->subset) {
    ChildReport note;
    note.type = ChildReport::Type::kProcIsSubset;
    Tell(note);
  }
  return Ok();
}

// Outer targets before what lies below them.
Status Child::AttachPlanned() {
  struct Item {
    const std::string* target;
    const cell::PlannedTmpfs* tmpfs;
    const MountSource* mount;
  };
  std::vector<Item> items;
  for (const cell::PlannedTmpfs& tmpfs : plan_.tmpfs)
    items.push_back({&tmpfs.target, &tmpfs, nullptr});
  for (const MountSource& mount : mounts_) items.push_back({&mount.target, nullptr, &mount});
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return *a.target < *b.target; });
  for (const Item& item : items) {
    if (item.tmpfs != nullptr) {
      TRY(root_->AttachTmpfs(*item.tmpfs));
    } else {
      TRY(root_->Attach(item.mount->target, item.mount->kind, item.mount->tree.get(),
                        item.mount->writable ? SourceOf(*item.target) : std::string()));
    }
  }
  TRY(MaskProcTree(*root_, *proc_));
  return root_->Seal();
}

Status Child::DropPrivileges() {
  TRY(sys::LockSecurebits());
  TRY(sys::DropBoundingSet());
  TRY(sys::DropCapabilities());
  return sys::SetNoNewPrivileges();
}

// A root of somebody else's that may not be entered would stop the next step. Where the ids of a
// cell are its owner's it may, whatever its mode.
Status Child::CheckRoot() {
  if (plan_.root != cell::RootKind::kRootfs) return Ok();
  return CheckUse(root_->fd(), ".", plan_.root_source, X_OK);
}

// With the rights of the job: what it may not use at all would only show as a strange failure in
// the cell. What lies below a source is as readable as it is.
Status Child::CheckAccess() {
  for (const cell::PlannedMount& mount : plan_.mounts) {
    const int mode = mount.kind == cell::EntryKind::kDirectory ? R_OK | X_OK : R_OK;
    TRY(CheckUse(AT_FDCWD, mount.target, mount.source, mode));
  }
  return Ok();
}

Status Child::CheckUse(int dir_fd, const std::string& path, const std::string& source,
                       int mode) const {
  Status used = sys::CheckAccess(dir_fd, path, mode);
  // What is not there any more is the attestation's to tell.
  if (used.ok() || used.error().err != EACCES) return Ok();
  const std::string_view wanted = mode == R_OK ? "r" : mode == X_OK ? "x" : "rx";
  std::string remedy = Text("chmod o+", wanted, " or setfacl -m u:", orders_.outside.uid, ":",
                            wanted, " ", ShellWord(source));
  if (orders_.outside.way == MapWay::kSubids)
    remedy += ", or run the cell under your own id (--userns own)";
  return Error(
      Kind::kConfig,
      Text("'", Printable(source), "' is not readable for the cell, which is uid ",
           orders_.outside.uid, " and gid ", orders_.outside.gid, " on the host: ", remedy),
      EACCES);
}

// 0, 1 and 2 as they are, the gate and the limit files; exec closes everything else.
Status Child::ArrangeDescriptors() {
  constexpr unsigned kFirst = 3;
  TRY(sys::CloseOnExecFrom(kFirst));
  for (const StreamFile& stream : streams_) TRY(sys::PlaceDescriptor(stream.file.get(), stream.fd));
  if (orders_.output >= 0) TRY(sys::PlaceDescriptor(orders_.output, STDOUT_FILENO));
  if (orders_.errors >= 0) TRY(sys::PlaceDescriptor(orders_.errors, STDERR_FILENO));
  for (const InitLimitFile& file : cgroup_->limit_files) TRY(sys::KeepOnExec(file.fd.get()));
  if (orders_.filter >= 0) TRY(sys::KeepOnExec(orders_.filter));
  return sys::KeepOnExec(orders_.gate);
}

Status Child::Exec() {
  std::vector<std::string> argv = {"taskcell-init", Text("--gate-fd=", orders_.gate)};
  for (const InitLimitFile& file : cgroup_->limit_files)
    argv.push_back(Text("--limit=", file.name, ":", file.fd.get()));
  argv.push_back(Text("--nofile=", plan_.limits.nofile));
  if (plan_.limits.file_bytes != 0) argv.push_back(Text("--file-size=", plan_.limits.file_bytes));
  if (cell::ListenerCount(plan_) > 0) argv.push_back("--listen");
  if (plan_.tunnels) argv.push_back("--tunnels");
  if (orders_.filter >= 0) argv.push_back(Text("--seccomp=", orders_.filter));
  if (orders_.stdio == cell::JobStdio::kInherit) argv.push_back("--inherit");
  if (orders_.stdio == cell::JobStdio::kTerminal) argv.push_back("--terminal");
  if (orders_.signal_mask != nullptr) TRY(sys::RestoreSignals(*orders_.signal_mask));
  return sys::ExecuteDescriptor(orders_.init, argv, {});
}

Status Child::Run(Stage& stage) {
  struct Step {
    Stage stage;
    Status (Child::*run)();
  };
  constexpr Step kSteps[] = {
      {Stage::kIdMaps, &Child::WaitForIdMaps},   {Stage::kPropagation, &Child::StopPropagation},
      {Stage::kSources, &Child::TakeSources},    {Stage::kCgroup, &Child::EnterCgroupBeforeIds},
      {Stage::kIds, &Child::BecomeInsideIds},    {Stage::kRoot, &Child::MakeRoot},
      {Stage::kAccess, &Child::CheckRoot},       {Stage::kProc, &Child::MakeProc},
      {Stage::kSysctls, &Child::WriteSysctls},   {Stage::kDevices, &Child::MakeDevices},
      {Stage::kMounts, &Child::AttachPlanned},   {Stage::kNetwork, &Child::StartNetwork},
      {Stage::kHostname, &Child::SetName},       {Stage::kPivot, &Child::Pivot},
      {Stage::kCgroup, &Child::EnterCgroupLast}, {Stage::kPrivileges, &Child::DropPrivileges},
      {Stage::kAccess, &Child::CheckAccess},
  };
  for (const Step& step : kSteps) {
    stage = step.stage;
    TRY((this->*step.run)());
  }
  if (!cgroup_) return Ok();
  stage = Stage::kDescriptors;
  TRY(ArrangeDescriptors());
  stage = Stage::kExec;
  return Exec();
}

}  // namespace

void RunChild(const ChildOrders& orders) {
  Child child(orders);
  Stage stage = Stage::kIdMaps;
  Status status = child.Run(stage);
  ChildReport report;
  report.type = ChildReport::Type::kReady;
  if (!status.ok()) report = ReportFailure(stage, status.error());
  child.Tell(report);
  sys::ExitNow(status.ok() ? 0 : 1);
}

}  // namespace taskcell::native
