#pragma once

#include <cstdint>
#include <string>

#include "launcher/native/subordinate_ids.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::probe {

// Chooses the ids of a cell whose daemon runs it with the ids asked for: one of the gateway user's
// subordinate ids (one each of uids and gids, by the run, so that two cells rarely share one), else
// the gateway's own. Error code container_refused for a gateway of uid or gid 0. Pure.
Result<CellIds> ChooseDaemonIds(const native::SubordinateIds& subordinate, uint32_t own_uid,
                                uint32_t own_gid, const std::string& run_id);

// The same for a rootless engine, whose containers have ids of its own user namespace: there 1 and
// up are the subordinate ids of the engine's user, who is taken to be the gateway's.
Result<CellIds> ChooseRootlessIds(const native::SubordinateIds& subordinate, uint32_t own_uid,
                                  uint32_t own_gid, const std::string& run_id);

// The same refusal on its own.
Status RefuseRootIds(uint32_t own_uid, uint32_t own_gid);

// A number that differs from run to run: the first eight hex digits. Pure.
uint64_t PickOf(const std::string& run_id);

}  // namespace taskcell::probe
