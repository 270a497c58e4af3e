#include "gateway/operator/hostile.h"

#include <chrono>
#include <memory>
#include <utility>

#include "gateway/operator/own_cell.h"
#include "gateway/task/admission.h"
#include "gateway/task/cancel.h"
#include "gateway/task/cell_entry.h"
#include "gateway/task/plan_task.h"
#include "gateway/task/platform.h"
#include "gateway/task/run_directory.h"
#include "gateway/task/task_record.h"
#include "launcher/base/text.h"
#include "launcher/cgroup/events.h"
#include "probe/attack/attack.h"
#include "probe/attack/world.h"
#include "probe/cells/program.h"

namespace taskcell::gateway {
namespace {

constexpr uint64_t kLifetimeMs = 120'000;  // of one cell: its attempts have seconds each

// A task's kind of cell with its run directory, and its container in the ledger while it is there.
class HomeCell final : public probe::RunningCell {
 public:
  HomeCell(std::unique_ptr<probe::RunningCell> cell, RunDirectory run, CellEntry entry)
      : run_(std::move(run)), entry_(std::move(entry)), cell_(std::move(cell)) {}

  const cell::CellPlan& plan() const override { return cell_->plan(); }
  pid_t host_pid() const override { return cell_->host_pid(); }
  const std::vector<std::string>& warnings() const override { return cell_->warnings(); }
  UniqueFd TakeGate() override { return cell_->TakeGate(); }
  Result<cell::OutsideAttestation> Observe() override { return cell_->Observe(); }
  Result<cgroup::Events> ReadEvents() override { return cell_->ReadEvents(); }
  Status Kill() override { return cell_->Kill(); }
  Status Remove() override {
    TRY(cell_->Remove());
    TRY(entry_.Forget());
    TRY(run_.Remove());
    run_.RemoveEmptyParents();
    return Ok();
  }

 private:
  // In this order: the cell goes before its directory does.
  RunDirectory run_;
  CellEntry entry_;
  std::unique_ptr<probe::RunningCell> cell_;
};

// Makes of what an attempt asks for the cell that a task of the home would get.
class HomeEngine final : public probe::CellEngine {
 public:
  HomeEngine(const Home& home, const Terms& terms, probe::CellEngine& engine,
             const Programs& programs)
      : home_(home), terms_(terms), engine_(engine), programs_(programs) {}

  cell::Engine kind() const override { return engine_.kind(); }
  std::string Name() const override { return engine_.Name(); }
  Status CheckReachable() override { return engine_.CheckReachable(); }
  Result<probe::ImageFacts> CheckImage(const std::string& image) override {
    return engine_.CheckImage(image);
  }
  Result<probe::CellIds> ChooseIds(const std::string& run_id) override {
    return engine_.ChooseIds(run_id);
  }

  Result<std::unique_ptr<probe::RunningCell>> Make(cell::CellPlan asked,
                                                   const probe::CellPlaces& /*places*/) override {
    const std::string run_id = asked.run_id;
    const probe::CellIds ids = TRY(engine_.ChooseIds(run_id));
    RunDirectory run = TRY(RunDirectory::Make(home_, run_id));
    cell::CellPlan plan = PlanLikeATask(std::move(asked), ids);
    CellEntry entry = TRY(CellEntry::Make(home_, engine_, plan));
    probe::CellPlaces places;
    places.run_directory = run.path();
    places.init_program = programs_.init;
    places.launch_program = programs_.launch;
    Result<std::unique_ptr<probe::RunningCell>> cell = engine_.Make(std::move(plan), places);
    if (cell.ok())
      return std::unique_ptr<probe::RunningCell>(
          std::make_unique<HomeCell>(std::move(cell).value(), std::move(run), std::move(entry)));
    Error error = Beside(cell.error(), {entry.ForgetRefused(cell.error()), run.Remove()});
    run.RemoveEmptyParents();
    return error;
  }

 private:
  cell::CellPlan PlanLikeATask(cell::CellPlan asked, const probe::CellIds& ids) const {
    cell::CellPlan plan = EmptyPlan(home_, "hostile", asked.run_id, kLifetimeMs);
    plan.uid = ids.uid;
    plan.gid = ids.gid;
    if (asked.root == cell::RootKind::kRootfs) {  // the root is the attempt
      plan.root = asked.root;
      plan.root_source = std::move(asked.root_source);
      plan.root_device = asked.root_device;
      plan.root_inode = asked.root_inode;
    } else {
      PlanRoot(engine_.kind(), terms_.settings.image, terms_.root, plan);
    }
    plan.limits = asked.limits;
    plan.limits.cpu_may_be_missing = terms_.own.cpu_may_be_missing;
    plan.tmpfs = std::move(asked.tmpfs);
    for (cell::PlannedTmpfs& tmpfs : plan.tmpfs) tmpfs.exec = true;
    plan.mounts = std::move(asked.mounts);
    return plan;
  }

  const Home& home_;
  const Terms& terms_;
  probe::CellEngine& engine_;
  const Programs& programs_;
};

Result<attack::Report> Attack(const Home& home, std::span<const attack::Payload* const> payloads,
                              Surroundings& surroundings, std::string& engine_name) {
  const Terms terms = TRY(ReadTerms(home));
  TRY(CheckPlatform());
  std::unique_ptr<probe::CellEngine> engine = TRY(surroundings.make_engine(terms.own));
  engine_name = engine->Name();
  TRY(engine->CheckReachable());
  TRY(engine->CheckShared({home.path, surroundings.programs.init}));
  engine_name = engine->Name();
  if (engine->kind() != cell::Engine::kNative) TRY(engine->CheckImage(terms.settings.image));
  if (engine->NeedsLimitsProbe()) TRY(surroundings.prove_limits(home, *engine, terms.settings));
  TRY(engine->CheckShared({"/tmp"}));  // where the world of the attempts lies
  const std::string attacker = TRY(probe::FindProgram("taskcell-attacker"));
  const std::string run_id = TRY(MakeRunId());
  attack::World world = TRY(attack::World::Make(attacker, run_id));
  live::Setting setting;
  setting.mounts = {world.tools()};
  HomeEngine like_a_task(home, terms, *engine, surroundings.programs);
  attack::Report report = attack::Attack(like_a_task, setting, world, payloads,
                                         [&] { return IsCancelled(surroundings); });
  if (terms.own.open_egress)
    report.warnings.emplace_back(
        "these cells had no network but their loopback: what a task reaches by the engine's bridge "
        "([taskcell] egress = \"open\") was not tried");
  return report;
}

}  // namespace

Result<attack::Report> AttackHome(const Home& home, const std::vector<std::string>& names,
                                  Surroundings& surroundings) {
  const std::vector<const attack::Payload*> payloads = TRY(attack::Choose(names));
  const auto begun = std::chrono::steady_clock::now();
  std::string engine_name = "none";
  Result<attack::Report> done = Attack(home, payloads, surroundings, engine_name);
  attack::Report report;
  if (done.ok()) {
    report = std::move(done).value();
  } else {
    report.refusal = std::move(done).error();
  }
  report.engine = engine_name;
  report.wall_ms = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                             std::chrono::steady_clock::now() - begun)
                                             .count());
  return report;
}

bool IsSafe(const attack::Report& report) {
  return attack::Overall(report) != attack::Verdict::kEscaped && report.differences.empty();
}

}  // namespace taskcell::gateway
