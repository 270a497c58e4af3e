#include "gateway/task/cell_entry.h"

#include <utility>

#include "gateway/task/task_record.h"

namespace taskcell::gateway {
namespace {

// Others come too late for that, or from an engine whose answer got lost or made no sense.
bool IsClearRefusal(const Error& error) {
  if (error.kind == Kind::kViolation) return false;
  return error.code == "container_refused" || error.code == "image_missing" ||
         error.code == "container_create_failed";
}

}  // namespace

CellEntry::CellEntry(std::string run_id, std::optional<Ledger> ledger)
    : run_id_(std::move(run_id)), ledger_(std::move(ledger)) {}

Result<CellEntry> CellEntry::Make(const Home& home, const probe::CellEngine& engine,
                                  const cell::CellPlan& plan) {
  if (engine.kind() == cell::Engine::kNative) return CellEntry(plan.run_id, std::nullopt);
  Result<Ledger> ledger = Ledger::Open(home.fd.get(), home.path);
  if (!ledger.ok()) return std::move(ledger).error().Coded("workspace_failed");
  Status entered = ledger->StartRun(
      {plan.run_id, "", engine.Name(), "", UnixMilliseconds(), plan.deadline_unix_ms, 0});
  if (!entered.ok()) return std::move(entered).error().Coded("workspace_failed");
  return CellEntry(plan.run_id, std::move(ledger).value());
}

Status CellEntry::Forget() {
  return ledger_.has_value() ? ledger_->ForgetScriptRun(run_id_) : Ok();
}

Status CellEntry::ForgetRefused(const Error& error) {
  return IsClearRefusal(error) ? Forget() : Ok();
}

}  // namespace taskcell::gateway
