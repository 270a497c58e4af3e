#include "launcher/cgroup/run_cgroup.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cgroup/cpuset.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/io_weight.h"
#include "launcher/cgroup/limits.h"
#include "launcher/cgroup/name.h"
#include "launcher/cgroup/observe.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/cgroup/removal.h"
#include "launcher/sys/file.h"
#include "launcher/sys/locked_directory.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/proc.h"

namespace taskcell::cgroup {
namespace {

struct NamedFile {
  Controller controller;
  bool unified;
  std::string_view name;
  const char* file;
};
constexpr NamedFile kLimitFiles[] = {
    {Controller::kMemory, false, "memory", "memory.limit_in_bytes"},
    {Controller::kMemory, false, "memsw", "memory.memsw.limit_in_bytes"},
    {Controller::kMemory, true, "memory", "memory.max"},
    {Controller::kMemory, true, "swap", "memory.swap.max"},
    {Controller::kPids, false, "pids", "pids.max"},
    {Controller::kPids, true, "pids", "pids.max"},
    {Controller::kCpu, false, "cpu_quota", "cpu.cfs_quota_us"},
    {Controller::kCpu, false, "cpu_period", "cpu.cfs_period_us"},
    {Controller::kCpu, true, "cpu_max", "cpu.max"},
    {Controller::kCpuset, false, "cpu_set", kCpusInForceV1},
    {Controller::kCpuset, true, "cpu_set", kCpusInForceV2},
    {Controller::kIo, false, "io_weight", kBfqWeightV1},
    {Controller::kIo, true, "io_weight", kBfqWeightV2},
    {Controller::kIo, true, "io_weight", kCostWeightV2},
};

// Files a kernel may lack: swap's on a host without swap accounting, which ApplyLimits judged, and
// one of the two for io.
bool MayBeAbsent(const NamedFile& file) {
  return file.name == "memsw" || file.name == "swap" || file.controller == Controller::kIo;
}

// Controllers that share a hierarchy share a cgroup.
struct Share {
  const Hierarchy* hierarchy;
  std::vector<Controller> controllers;
};

bool IsOptional(Controller controller) {
  return controller == Controller::kCpuset || controller == Controller::kIo;
}

std::vector<Controller> Wanted(const cell::Limits& limits) {
  std::vector<Controller> wanted(std::begin(kControllers), std::end(kControllers));
  if (!limits.cpu_set.empty()) wanted.push_back(Controller::kCpuset);
  if (limits.io_weight != 0) wanted.push_back(Controller::kIo);
  return wanted;
}

bool MayBeMissing(Controller controller, const cell::Limits& limits) {
  return controller == Controller::kCpu && limits.cpu_may_be_missing;
}

Result<std::vector<Share>> SharesOf(const Layout& layout, const cell::Limits& limits) {
  std::vector<Share> shares;
  for (Controller controller : Wanted(limits)) {
    const Hierarchy* hierarchy = layout.Find(controller);
    if (hierarchy == nullptr && MayBeMissing(controller, limits)) continue;
    if (hierarchy == nullptr) {
      return Unenforced({controller},
                        Error(Kind::kUnsupported,
                              Text("no cgroup hierarchy holds it. The kernel was built or booted "
                                   "without it (cgroup_disable=",
                                   NameOnV1(controller),
                                   " on the kernel command line): an administrator must boot with "
                                   "it")));
    }
    auto same = std::find_if(shares.begin(), shares.end(),
                             [&](const Share& share) { return share.hierarchy == hierarchy; });
    if (same == shares.end()) same = shares.insert(shares.end(), Share{hierarchy, {}});
    same->controllers.push_back(controller);
  }
  return shares;
}

// The place for what `share` limits, which becomes less where a controller may be missing and is;
// nothing where then nothing is left.
Result<std::optional<Place>> PlaceOf(Share& share, const cell::Limits& limits,
                                     const std::string& parent) {
  Result<Place> place = FindPlace(*share.hierarchy, share.controllers, parent);
  if (place.ok()) return std::optional<Place>(std::move(place).value());
  std::size_t less = std::erase_if(
      share.controllers, [&](Controller controller) { return MayBeMissing(controller, limits); });
  if (less == 0) return std::move(place).error();
  if (share.controllers.empty()) return std::optional<Place>();
  return std::optional<Place>(TRY(FindPlace(*share.hierarchy, share.controllers, parent)));
}

}  // namespace

Result<RunCgroup> RunCgroup::Make(const std::string& run_id, const cell::Limits& limits,
                                  const std::string& parent) {
  return MakeIn(TRY(ReadLayout()), run_id, limits, parent);
}

Result<RunCgroup> RunCgroup::MakeIn(Layout layout, const std::string& run_id,
                                    const cell::Limits& limits, const std::string& parent) {
  if (!IsRunName(RunName(run_id)))
    return Error(Kind::kUsage,
                 Text("run id '", Printable(run_id), "' is not 32 lowercase hex digits"), EINVAL);
  bool host_has_swap = TRY(sys::HostHasSwap());
  RunCgroup made(RunName(run_id), std::move(layout), host_has_swap);
  std::vector<Share> shares = TRY(SharesOf(made.layout_, limits));
  for (Share& share : shares) {
    std::optional<cgroup::Place> place = TRY(PlaceOf(share, limits, parent));
    if (!place) continue;
    Status added = made.AddBranch(std::move(*place), share.controllers, limits);
    if (!added.ok()) return Unenforced(share.controllers, std::move(added).error());
  }
  return made;
}

RunCgroup::~RunCgroup() {
  (void)Remove();  // ignoring: a later run sweeps what can't be removed now
}

Status RunCgroup::AddBranch(cgroup::Place place, const std::vector<Controller>& controllers,
                            const cell::Limits& limits) {
  SweepStale(place.directory.get());
  std::string path = Text("'", Printable(place.path), "/", name_, "'");
  Result<UniqueFd> run = sys::MakeLockedDirectory(place.directory.get(), name_, 0755);
  if (!run.ok()) {
    if (run.error().err == EAGAIN)
      return std::move(run).error().With(
          "cgroup.max.descendants or cgroup.max.depth is reached above");
    return std::move(run).error().With(place.path);
  }
  bool unified = place.unified;
  // From here on the destructor removes it, whatever fails.
  branches_.push_back({std::move(place), controllers, std::move(run).value(), UniqueFd()});
  Branch& branch = branches_.back();
  TRY(ApplyLimits(branch.run.get(), unified, controllers, limits, host_has_swap_).With(path));
  Status made = sys::MakeDirectory(branch.run.get(), kCellName, 0755);
  // The kernel charges what it needs for a cgroup to the one above.
  if (!made.ok() && made.error().err == ENOMEM)
    return Error(Kind::kConfig, TooLittleMemory(limits.memory_bytes), ENOMEM);
  TRY(std::move(made).With(path));
  branch.cell = TRY(OpenCgroup(branch.run.get(), kCellName).With(path));
  if (unified) return Ok();  // only `run` has files of these controllers
  for (Controller controller : controllers) {
    if (IsOptional(controller))
      TRY(ApplyLimits(branch.cell.get(), false, {&controller, 1}, limits, false).With(path));
  }
  if (std::count(controllers.begin(), controllers.end(), Controller::kMemory) == 0) return Ok();
  for (int fd : {branch.run.get(), branch.cell.get()})
    TRY(ApplySocketMemoryV1(fd, limits.memory_bytes).With(path));
  return Ok();
}

int RunCgroup::clone_fd() const {
  for (const Branch& branch : branches_) {
    if (branch.place.unified) return branch.cell.get();
  }
  return -1;
}

bool RunCgroup::limits_cpu() const {
  return std::any_of(branches_.begin(), branches_.end(), [](const Branch& branch) {
    return std::count(branch.controllers.begin(), branch.controllers.end(), Controller::kCpu) > 0;
  });
}

Result<std::vector<UniqueFd>> RunCgroup::OpenEntries(bool with_unified) const {
  std::vector<UniqueFd> entries;
  for (const Branch& branch : branches_) {
    if (branch.place.unified && !with_unified) continue;
    // Only through v1's `tasks` does a single thread move without the lock; v2 has no such file.
    const char* file = branch.place.unified ? "cgroup.procs" : "tasks";
    entries.push_back(TRY(sys::OpenAt2(branch.cell.get(), file, O_WRONLY, sys::kResolveBeneath)));
  }
  return entries;
}

Status RunCgroup::Enter(int entry_fd) { return sys::WriteAll(entry_fd, "0"); }

Status RunCgroup::Place(pid_t pid) const {
  for (const Branch& branch : branches_) {
    Status placed = sys::WriteControl(branch.cell.get(), "cgroup.procs", Text(pid));
    if (!placed.ok())
      return Unenforced(branch.controllers,
                        std::move(placed).error().With(Text("move process ", pid, " to '",
                                                            Printable(branch.place.path), "/",
                                                            name_, "/", kCellName, "'")));
  }
  return Ok();
}

Result<std::vector<LimitFile>> RunCgroup::OpenLimitFiles() const {
  std::vector<LimitFile> files;
  for (const Branch& branch : branches_) {
    for (const NamedFile& each : kLimitFiles) {
      if (each.unified != branch.place.unified) continue;
      if (std::count(branch.controllers.begin(), branch.controllers.end(), each.controller) == 0)
        continue;
      Result<UniqueFd> fd =
          sys::OpenAt2(branch.run.get(), each.file, O_RDONLY, sys::kResolveBeneath);
      if (!fd.ok() && fd.error().err == ENOENT && MayBeAbsent(each)) continue;
      files.push_back({each.name, TRY(std::move(fd))});
    }
  }
  return files;
}

Result<cell::OutsideAttestation> RunCgroup::Observe(pid_t pid) const {
  sys::Proc proc = TRY(sys::Proc::Open());
  UniqueFd process = TRY(proc.Open(Text(pid), O_RDONLY | O_DIRECTORY));
  std::vector<Controller> more;
  for (const Branch& branch : branches_)
    std::copy_if(branch.controllers.begin(), branch.controllers.end(), std::back_inserter(more),
                 IsOptional);
  return ObserveIn(layout_, process.get(), pid, host_has_swap_, more)
      .With(Text("observe process ", pid, " from outside"));
}

Result<EventFiles> RunCgroup::OpenEventFiles() const {
  EventFiles files;
  for (const Branch& branch : branches_) {
    for (Controller controller : branch.controllers) {
      TRY(files.Add(branch.run.get(), branch.place.unified, controller));
      TRY(files.Add(branch.cell.get(), branch.place.unified, controller));
    }
  }
  return files;
}

Result<Events> RunCgroup::ReadEvents() const { return TRY(OpenEventFiles()).Read(); }

Status RunCgroup::Kill() const {
  for (const Branch& branch : branches_) {
    TRY(KillAll(branch.run.get()).With(branch.place.path));
  }
  return Ok();
}

Status RunCgroup::Remove() {
  Status outcome = Ok();
  std::erase_if(branches_, [&](const Branch& branch) {
    // Mostly it is empty by now, and two calls do.
    (void)sys::RemoveDirectory(branch.run.get(), kCellName);  // ignoring: RemoveCgroup tells
    Status removed = RemoveCgroup(branch.place.directory.get(), name_, kRemoveTimeoutMs);
    bool gone = removed.ok();
    if (!gone) outcome = std::move(removed).With(branch.place.path);
    return gone;
  });
  return outcome;
}

}  // namespace taskcell::cgroup
