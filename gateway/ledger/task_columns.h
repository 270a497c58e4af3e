#pragma once

#include <string_view>

#include "gateway/ledger/database.h"
#include "gateway/ledger/ledger.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// The columns of a task, in the order in which ReadTask reads them.
inline constexpr std::string_view kTaskColumns =
    "id, agent, kind, owner, state, code, message, accepted_ms, started_ms, ended_ms";
inline constexpr int kTaskColumnCount = 10;

Result<TaskRow> ReadTask(const Statement& row);

}  // namespace taskcell::gateway
