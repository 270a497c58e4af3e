#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "probe/attack/report.h"
#include "probe/attack/world.h"
#include "probe/engine/endpoint.h"
#include "probe/live/live.h"

namespace taskcell::attack {

// The payloads that `names` (of payloads or topics) stand for, in their order; all where there is
// no name. kUsage for a name that is neither.
Result<std::vector<const Payload*>> Choose(const std::vector<std::string>& names);

// Tries each payload outside, then in a cell that `engine` makes, and judges. Neighbours of one
// topic have one cell for as long as each of them fails there as in a cell of its own; where
// anything else is seen, each gets one. `stopped` is asked before each cell, and ends it with the
// code "stopped".
Report Attack(probe::CellEngine& engine, const live::Setting& setting, World& world,
              std::span<const Payload* const> payloads, const std::function<bool()>& stopped);

// The same with cells that taskcell-launch makes on this host, or with containers of the engine at
// `endpoint`, of an image made on the spot. Nothing is left behind, as with taskcell-probe live; of
// a process that is killed itself some empty System V and POSIX objects are.
Report AttackNative(std::span<const Payload* const> payloads, const std::function<bool()>& stopped);
Report AttackEngine(const probe::Endpoint& endpoint, std::span<const Payload* const> payloads,
                    const std::function<bool()>& stopped);

}  // namespace taskcell::attack
