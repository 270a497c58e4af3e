#include "gateway/operator/own_cell.h"

#include <memory>
#include <string>
#include <utility>

#include "gateway/ledger/audit.h"
#include "gateway/task/admission.h"
#include "gateway/task/cancel.h"
#include "gateway/task/cell_entry.h"
#include "gateway/task/engine_fault.h"
#include "gateway/task/verify_cell.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

Status InCell(const OwnCell& own, probe::RunningCell& cell,
              const std::function<Status(VerifiedCell&)>& body) {
  gate::GateHost gate = TRY(gate::GateHost::Open(cell.TakeGate(), own.surroundings.cancel_fd));
  Receipt receipt;
  receipt.run_id = cell.plan().run_id;
  UniqueFd terminal;
  CellWays ways = TRY(VerifyCell(gate, cell, own.engine.kind(), receipt, &terminal));
  if (IsCancelled(own.surroundings)) return Stopped();
  VerifiedCell verified{gate, cell, ways, terminal, receipt};
  Status done = body(verified);
  (void)gate.Done();  // ignoring: the cell is removed either way
  return done;
}

Error LeftBehind(const OwnCell& own, const Status& done, const Error& error) {
  Status noted =
      AppendAudit(own.home.fd.get(),
                  {"task_sandbox_cleanup_failed",
                   std::string(own.agent),
                   "warning",
                   {{"reason", std::string("container_remove_failed")}, {"count", uint64_t{1}}}});
  std::string text = done.ok() ? std::string() : Text(done.error().text, "; and ");
  text += Text("left behind: ", error.text, "; `taskcell sweep` removes it when its time is over");
  if (!noted.ok()) text += Text("; ", noted.error().text);
  return Error(Kind::kSystem, std::move(text)).Coded("cleanup_failed");
}

}  // namespace

Result<Terms> ReadTerms(const Home& home) {
  const ConfigValue config = TRY(ReadConfig(home));
  Terms terms;
  terms.settings = TRY(ReadSandboxSettings(config));
  terms.own = TRY(ReadTaskcellSettings(config));
  terms.settings.cpu_may_be_missing = terms.own.cpu_may_be_missing;
  terms.root = TRY(PinNativeRoot(terms.own));
  return terms;
}

Error Beside(Error error, std::initializer_list<Status> others) {
  for (const Status& other : others)
    if (!other.ok()) error.text += Text("; and ", other.error().text);
  return error;
}

Status InOwnCell(const OwnCell& own, cell::CellPlan plan,
                 const std::function<Status(VerifiedCell&)>& body) {
  CellEntry entry = TRY(CellEntry::Make(own.home, own.engine, plan));
  const cell::Limits limits = plan.limits;
  probe::CellPlaces places;
  places.run_directory = own.run.path();
  places.init_program = own.surroundings.programs.init;
  places.launch_program = own.surroundings.programs.launch;
  Result<std::unique_ptr<probe::RunningCell>> cell = own.engine.Make(std::move(plan), places);
  if (!cell.ok()) {
    Status forgotten = entry.ForgetRefused(cell.error());
    return Beside(NameRefusedLimit(std::move(cell).error(), limits), {forgotten});
  }
  Status done = InCell(own, *cell.value(), body);
  Status removed = cell.value()->Remove();
  if (!removed.ok()) return LeftBehind(own, done, removed.error());
  Status forgotten = entry.Forget();
  if (!done.ok()) return Beside(std::move(done).error(), {forgotten});
  if (!forgotten.ok()) return std::move(forgotten).error().Coded("workspace_failed");
  return Ok();
}

}  // namespace taskcell::gateway
