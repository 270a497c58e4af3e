#include "gateway/task/limits_probe.h"

#include <chrono>
#include <mutex>

#include "gateway/task/cancel.h"
#include "gateway/task/cell_entry.h"
#include "gateway/task/engine_fault.h"
#include "gateway/task/plan_task.h"
#include "gateway/task/run_directory.h"
#include "launcher/base/text.h"
#include "launcher/cell/compare.h"
#include "launcher/gate/gate_host.h"
#include "probe/cells/selinux.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAttestationWait{10};
constexpr uint64_t kProbeTimeoutMs = 15000;  // the whole check container
constexpr std::chrono::milliseconds kLookEvery{50};
constexpr std::string_view kUnenforced = "resource_limits_unenforced";
constexpr std::string_view kRemedy =
    "; delegate the memory, pids and cpu controllers to the user the engine runs as "
    "(taskcell-probe delegate prints how) and restart it";

// What the check cell's own errors mean for the engine. Those that say what is wrong stay.
Error Explain(Error error) {
  if (error.code == kUnenforced) {
    error.text += kRemedy;
    return error;
  }
  for (std::string_view own : {"docker_unreachable", "image_missing", "workspace_failed",
                               "container_refused", "engine_unsupported", "stopped"})
    if (error.code == own) return error;
  const bool is_denied = error.text.starts_with(probe::kSelinuxLabels);
  return Error(Kind::kUnsupported,
               Text("the engine runs rootless, and the container that was to check its limits did "
                    "not finish: ",
                    error.text, is_denied ? "" : kRemedy))
      .Coded(kUnenforced);
}

Status CompareLimits(const cell::CellPlan& plan, cell::Engine engine,
                     const cell::Attestation& seen) {
  std::string differences;
  for (const cell::Mismatch& mismatch : cell::Compare(plan, engine, seen)) {
    if (mismatch.is_limit)
      differences += Text(differences.empty() ? "" : "; ", cell::Describe(mismatch));
  }
  if (differences.empty()) return Ok();
  return Error(Kind::kUnsupported,
               Text("the engine runs rootless and does not enforce limits (", differences, ")"))
      .Coded(kUnenforced);
}

Status Attest(probe::RunningCell& cell, cell::Engine engine, int cancel_fd) {
  gate::GateHost gate = TRY(gate::GateHost::Open(cell.TakeGate(), cancel_fd));
  gate::GateHost::Arrival arrival =
      TRY(gate.Attest(cell::ListenerCount(cell.plan()), Clock::now() + kAttestationWait));
  cell::Attestation seen;
  seen.inside = std::move(arrival.inside);
  seen.outside = TRY(cell.Observe());
  return CompareLimits(cell.plan(), engine, seen);
}

Status Prove(const Home& home, probe::CellEngine& engine, const SandboxSettings& settings,
             const Programs& programs, int cancel_fd) {
  const std::string run_id = TRY(MakeRunId());
  probe::CellIds ids = TRY(engine.ChooseIds(run_id));
  RunDirectory directory = TRY(RunDirectory::Make(home, run_id));
  cell::CellPlan plan = EmptyPlan(home, "limits-probe", run_id, kProbeTimeoutMs);
  plan.uid = ids.uid;
  plan.gid = ids.gid;
  const bool is_native = engine.kind() == cell::Engine::kNative;
  plan.root = is_native ? cell::RootKind::kHost : cell::RootKind::kImage;
  if (!is_native) plan.root_source = settings.image;
  PlanLimits(settings, plan);
  probe::CellPlaces places;
  places.run_directory = directory.path();
  places.init_program = programs.init;
  places.launch_program = programs.launch;
  Status proven = Ok();
  const cell::Limits limits = plan.limits;
  Result<CellEntry> entry = CellEntry::Make(home, engine, plan);
  Result<std::unique_ptr<probe::RunningCell>> cell =
      entry.ok() ? engine.Make(std::move(plan), places) : entry.error();
  if (cell.ok()) {
    proven = Attest(*cell.value(), engine.kind(), cancel_fd);
    Status removed = cell.value()->Remove();
    if (removed.ok()) removed = entry->Forget();
    if (proven.ok()) proven = std::move(removed);
  } else {
    Status forgotten = entry.ok() ? entry->ForgetRefused(cell.error()) : Ok();
    Error error = NameEngineFault(std::move(cell).error(), engine, limits, settings.image);
    if (!forgotten.ok()) error.text += Text("; and ", forgotten.error().text);
    proven = std::move(error);
  }
  Status removed = directory.Remove();
  directory.RemoveEmptyParents();
  if (proven.ok() && !removed.ok()) return removed;
  return proven;
}

}  // namespace

Status LimitsProbe::Check(const Home& home, probe::CellEngine& engine,
                          const SandboxSettings& settings, const Programs& programs,
                          int cancel_fd) {
  std::unique_lock lock(mutex_, std::defer_lock);
  while (!lock.try_lock_for(kLookEvery)) {
    if (IsCancelled(cancel_fd)) return Stopped();
  }
  const std::string identity = engine.Identity();
  if (passed_.contains(identity)) return Ok();
  Status proven = Prove(home, engine, settings, programs, cancel_fd);
  // The launcher says itself what is wrong, and how to mend it.
  if (!proven.ok() && engine.kind() == cell::Engine::kNative) return proven;
  if (!proven.ok()) return Explain(std::move(proven).error());
  passed_.insert(identity);
  return Ok();
}

}  // namespace taskcell::gateway
