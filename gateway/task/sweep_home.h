#pragma once

#include "gateway/config/home.h"
#include "gateway/sweep/sweep.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Sweeps a home with the engine its configuration names, and with those it named before as far as
// the ledger says where they are; see Sweep.
Result<SweepReport> SweepHome(const Home& home, const SweepOptions& options);

}  // namespace taskcell::gateway
