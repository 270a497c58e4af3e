#pragma once

#include <optional>
#include <string>

#include "gateway/config/home.h"
#include "gateway/ledger/ledger.h"
#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// The container of a cell that is no task's, in the ledger: a sweep removes none whose run that
// does not know. A launcher's cell goes with its launcher and has no entry.
class CellEntry {
 public:
  // Before the cell is made. Error code workspace_failed.
  static Result<CellEntry> Make(const Home& home, const probe::CellEngine& engine,
                                const cell::CellPlan& plan);

  // To be called once nothing of the cell is there.
  Status Forget();

  // After CellEngine::Make failed with `error`: forgets it where that says that the engine made no
  // container, and leaves it to the sweep where there may be one.
  Status ForgetRefused(const Error& error);

 private:
  CellEntry(std::string run_id, std::optional<Ledger> ledger);

  std::string run_id_;
  std::optional<Ledger> ledger_;
};

}  // namespace taskcell::gateway
