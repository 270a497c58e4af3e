#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>

#include "gateway/config/home.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/egress/cell_ways.h"
#include "gateway/ledger/receipt.h"
#include "gateway/task/native_root.h"
#include "gateway/task/run_directory.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/gate/gate_host.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// What config.toml says of the cells of a home.
struct Terms {
  SandboxSettings settings;
  TaskcellSettings own;
  NativeRoot root;
};

// Read now, and the native root pinned. Error codes as of the settings' readers.
Result<Terms> ReadTerms(const Home& home);

// Where a cell that an operator asks for is made, as a task's is.
struct OwnCell {
  const Home& home;
  const RunDirectory& run;
  probe::CellEngine& engine;
  const Surroundings& surroundings;
  std::string_view agent = "system";  // whom the audit log names
};

// A cell that stands at its gate and is what was planned.
struct VerifiedCell {
  gate::GateHost& gate;
  probe::RunningCell& cell;
  CellWays& ways;
  UniqueFd& terminal;  // the master side of the cell's terminal, where the plan has one
  const Receipt& receipt;
};

// The error, with what failed beside it in its text.
Error Beside(Error error, std::initializer_list<Status> others);

// Makes the cell of `plan`, enters its container in the ledger before, so that a sweep knows it,
// has it verified, and only then calls `body`. The cell is killed and removed on every way out;
// what stays is audited and told in the Error. Error codes as of CellEngine::Make and VerifyCell,
// workspace_failed, stopped, cleanup_failed, and those of `body`.
Status InOwnCell(const OwnCell& own, cell::CellPlan plan,
                 const std::function<Status(VerifiedCell&)>& body);

}  // namespace taskcell::gateway
