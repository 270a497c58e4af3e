#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "gateway/config/home.h"
#include "gateway/ledger/receipt.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Weaker modes that are asked for by name: where the run of `receipt` has one, it is audited and
// gets a warning in the receipt; elsewhere nothing happens. `family` is the runtime's.

// [taskcell] egress = "open", before the cell is made. Error code workspace_failed when the event
// could not be written: the cell must not be made then.
Status NoteOpenEgress(const Home& home, std::string_view family, Receipt& receipt);

// [taskcell] allow_missing = ["cpu"] that was needed: a cell which passed the comparison without a
// processor limit. `event` is what the event is called, `of` the detail that says what ran. The
// Error says that the event could not be written.
Status NoteMissingCpu(const Home& home, std::string_view event,
                      const std::pair<std::string, std::string>& of, Receipt& receipt);

}  // namespace taskcell::gateway
