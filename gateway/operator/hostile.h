#pragma once

#include <string>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"
#include "probe/attack/report.h"

namespace taskcell::gateway {

// Tries the escape attempts of `names` (payloads or topics of taskcell-probe attack; none: all of
// them) in cells that the home's engine makes as it makes a task's: from the home's settings, with
// a task's mounts below its run directory, entered in the ledger before, attested and compared.
// Their network is that of egress "provider"; with "open" a warning says that this is another. Only
// the limits are the attempts' own, so that they can be reached in time. What was in the way of any
// cell is the report's refusal. Nothing is left behind; what a killed process leaves is the
// sweep's. kUsage for a name that is neither.
Result<attack::Report> AttackHome(const Home& home, const std::vector<std::string>& names,
                                  Surroundings& surroundings);

// Nothing got out, and every cell was what was planned. Pure.
bool IsSafe(const attack::Report& report);

}  // namespace taskcell::gateway
