#pragma once

#include "gateway/egress/cell_ways.h"
#include "gateway/ledger/receipt.h"
#include "launcher/base/result.h"
#include "launcher/cell/compare.h"
#include "launcher/gate/gate_host.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// Waits for the attestation of a cell that stands at its gate, observes the cell from outside and
// compares both halves with the plan; `receipt` tells what was seen. On success, and only then, a
// job may be handed over, and the cell's loopback listeners are returned; `terminal` gets the
// master side of the cell's terminal where the plan has one. Error codes:
// resource_limits_unenforced where nothing but limits differs, cell_mismatch for any other
// difference, stopped.
Result<CellWays> VerifyCell(gate::GateHost& gate, probe::RunningCell& cell, cell::Engine engine,
                            Receipt& receipt, UniqueFd* terminal = nullptr);

}  // namespace taskcell::gateway
