#include "launcher/native/cell.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/native/child.h"
#include "launcher/native/namespace_fault.h"
#include "launcher/native/stage.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

struct Built {
  sys::Child init;
  bool proc_is_subset = false;
};

// Reads the child's reports until it executed taskcell-init or gave up.
Status ReadReports(int pipe, bool trial, bool& subset) {
  bool ready = false;
  while (true) {
    ChildReport report;
    std::span<char> bytes(reinterpret_cast<char*>(&report), sizeof report);
    std::size_t got = TRY(sys::Read(pipe, bytes));
    if (got == 0) break;
    if (got != sizeof report) return Error(Kind::kInternal, "a cut report from the cell's child");
    switch (report.type) {
      case ChildReport::Type::kProcIsSubset:
        subset = true;
        break;
      case ChildReport::Type::kReady:
        ready = true;
        break;
      case ChildReport::Type::kFailure: {
        Error error = ErrorOf(report);
        // What the plan or its sources do wrong is not for the namespaces to explain.
        bool denied = error.kind == Kind::kDenied && report.stage != Stage::kSources;
        return denied ? ExplainNamespaceFault(std::move(error)) : std::move(error);
      }
    }
  }
  if (trial && !ready) return Error(Kind::kSystem, "the cell's child died before it was set up");
  return Ok();
}

// Clones the child, maps its ids, and waits until it runs taskcell-init (or, in a trial, could).
Result<Built> Build(ChildOrders orders, int cgroup_fd) {
  sys::Pipe report = TRY(sys::MakePipe());
  sys::Pipe maps = TRY(sys::MakePipe());
  orders.report = report.write_end.get();
  orders.maps_written = maps.read_end.get();
  Result<sys::Cloned> cloned = sys::CloneProcess(kNamespaces, cgroup_fd);
  if (!cloned.ok()) {
    Error error = std::move(cloned).error();
    if (cgroup_fd >= 0 && error.err != ENOSPC && error.err != EPERM) return error;
    return ExplainNamespaceFault(std::move(error));
  }
  if (cloned->in_child) {
    maps.write_end.Reset();
    report.read_end.Reset();
    RunChild(orders);
  }
  report.write_end.Reset();
  maps.read_end.Reset();
  Built built{std::move(cloned->child)};
  if (orders.outside.way != MapWay::kOwn) {
    Status written = WriteIdMaps(built.init.pid(), *orders.plan, orders.outside);
    if (!written.ok()) return ExplainNamespaceFault(std::move(written).error().With("id maps"));
    TRY(sys::WriteAll(maps.write_end.get(), "m"));
  }
  TRY(ReadReports(report.read_end.get(), orders.trial, built.proc_is_subset));
  return built;
}

// Whether everything but the limits could be made; the reason when not.
Status TryIsolation(ChildOrders orders) {
  orders.trial = true;
  orders.init = -1;
  orders.gate = -1;
  TRY(Build(std::move(orders), -1));
  return Ok();
}

// CLONE_INTO_CGROUP where there is a v2 share, and clone3; else the child walks in by itself.
Result<Built> BuildInCgroup(ChildOrders orders, const cgroup::RunCgroup& cgroup) {
  std::vector<UniqueFd> entries = TRY(cgroup.OpenEntries(false));
  for (const UniqueFd& entry : entries) orders.cgroup_entries.push_back(entry.get());
  if (cgroup.clone_fd() < 0) return Build(std::move(orders), -1);
  Result<Built> built = Build(orders, cgroup.clone_fd());
  if (built.ok() || built.error().err != ENOSYS) return built;
  entries = TRY(cgroup.OpenEntries(true));
  orders.cgroup_entries.clear();
  for (const UniqueFd& entry : entries) orders.cgroup_entries.push_back(entry.get());
  return Build(std::move(orders), -1);
}

}  // namespace

Result<NativeCell> NativeCell::Make(CellOrders orders) {
  TRY(sys::AssertSingleThread());
  TRY(cell::CheckPlan(*orders.plan));
  ChildOrders child;
  child.plan = orders.plan;
  child.outside = TRY(ChooseOutsideIds(orders.user_namespace, *orders.plan));
  child.init = orders.init;
  child.gate = orders.gate.get();
  child.signal_mask = orders.signal_mask;
  Result<cgroup::RunCgroup> made =
      cgroup::RunCgroup::Make(orders.plan->run_id, orders.plan->limits);
  if (!made.ok()) {
    TRY(TryIsolation(std::move(child)));
    return std::move(made).error();
  }
  cgroup::RunCgroup cgroup = std::move(made).value();
  std::vector<cgroup::LimitFile> limits = TRY(cgroup.OpenLimitFiles());
  for (const cgroup::LimitFile& file : limits)
    child.limit_files.push_back({file.name, file.fd.get()});
  OutsideIds outside = child.outside;
  Built built = TRY(BuildInCgroup(std::move(child), cgroup));
  // Only now: the child's id maps could not be written through a /proc that belongs to root.
  return NativeCell(std::move(built.init), std::move(cgroup), outside, built.proc_is_subset);
}

}  // namespace taskcell::native
