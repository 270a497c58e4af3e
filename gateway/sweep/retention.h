#pragma once

#include "gateway/config/home.h"
#include "gateway/config/retention.h"
#include "gateway/sweep/sweep.h"

namespace taskcell::gateway {

// Removes what [taskcell.retention] no longer keeps: receipts (from the beginning of their chain),
// exports, logs of other days than today, and tasks of the ledger that ended and whose reply was
// delivered; each kind the oldest first, by its age and by how much there is. Adds what went to
// `report.expired`, and what could not to `report.notes` and `report.failures`
// ("retention_failed"): one kind keeps no other from going. With dry_run nothing goes, and of a
// ledger with too many bytes `report.notes` has only that.
void ApplyRetention(const Home& home, const Retention& retention, const SweepOptions& options,
                    SweepReport& report);

}  // namespace taskcell::gateway
