#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "probe/attack/payload.h"
#include "probe/attack/world.h"
#include "probe/live/live.h"

namespace taskcell::attack {

// What payloads did in one cell.
struct Trial {
  std::vector<Attempted> inside;  // of each, in their order
  // How many of them told that themselves. The others were ended, or never got their turn.
  std::size_t told = 0;
  // For Way::kBeside: what a process outside got of each second meanwhile.
  std::optional<uint64_t> free_millis;
  std::vector<std::string> changes;      // outside, of what no payload may change
  std::vector<std::string> differences;  // of the cell from its plan
  std::vector<std::string> warnings;
};

// The cell that is attacked, but for its run id. `setting` says what it is made of. Pure.
cell::CellPlan PlanAttacked(const live::Setting& setting, const Targets& targets);

// Makes a cell, lets the payloads loose in it one after the other whatever the attestation says
// (that is the point: the payloads are harmless one by one), looks at the host and the cell's
// limits again, and removes the cell. More than one payload must all be Way::kInChild. An Error
// says that there was no cell to attack, with the code of what was in the way.
Result<Trial> TryInside(probe::CellEngine& engine, const live::Setting& setting, World& world,
                        std::span<const Payload* const> payloads);

}  // namespace taskcell::attack
