#pragma once

#include <string>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/ledger/receipt.h"

namespace taskcell::gateway {

// One task may be tried with several accounts, each in a cell of its own: it tells everything once.
// `told` is what it was warned of with the accounts before.

// Each entry of the agent directory that the run of `receipt` is not shown gets its line in the
// gateway's log. What cannot be written is a warning in the receipt.
void LogLeftOut(const Home& home, const std::vector<std::string>& told, Receipt& receipt);

// Takes away what was told.
void DropTold(const std::vector<std::string>& told, std::vector<std::string>& warnings);

}  // namespace taskcell::gateway
