#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"

namespace taskcell::cell {

enum class Engine : uint8_t { kNative, kDocker, kPodman };

// One field in which a cell is not what was planned.
struct Mismatch {
  std::string field;    // stable id: "uid", "limits.memory", "mount:/agent", "root.readonly", ...
  std::string planned;  // for a person
  std::string found;
  bool is_limit = false;  // true: the task is refused as resource_limits_unenforced, false: it
                          // fails as cell_mismatch
};

// Compares a plan with both halves of an attestation. Empty means the cell is exactly what was
// planned. The kernel's and the engine's own rounding (page, tmpfs block, cpu period) is applied;
// what an engine adds by itself is one table per engine (engine_additions.h). Pure.
std::vector<Mismatch> Compare(const CellPlan& plan, Engine engine, const Attestation& seen);

// The names of the calls that a filter of the plan's own leaves open and the default one denies.
// Pure.
std::vector<std::string> CallsLeftOpen(const InsideAttestation& seen);

// One line for a log: "limits.memory: planned 67108864, found unlimited".
std::string Describe(const Mismatch& mismatch);

}  // namespace taskcell::cell
