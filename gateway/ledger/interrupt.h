#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/ledger/ledger.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Ends as interrupted what processes that are gone were running, each task with the one line that a
// failure has in the gateway's log; their ids. A log that can't be written stops nothing.
Result<std::vector<std::string>> EndInterrupted(Ledger& ledger, int home_fd, int64_t now_ms);

}  // namespace taskcell::gateway
