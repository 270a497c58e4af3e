#pragma once

#include <string_view>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/ledger/receipt.h"
#include "gateway/task/verdict.h"

namespace taskcell::gateway {

// Where what the program's own output tells of its run cannot be true by the broker's record, which
// no tool can forge: more steps, calls of tools or tokens, other tools, another finish, or a reply
// without an answer of a model. A program may tell less than there was, but for the names of tools
// in a run that ended by itself, and our own loop's tokens. Nothing where no broker read. At most
// one of each kind. Pure.
std::vector<EvidenceDifference> FindDifferences(const Evidence& evidence);

// Audits the receipt's differences as one event, task_sandbox_evidence_differs, and adds a warning
// to the receipt.
Status NoteDifferences(const Home& home, std::string_view family, Receipt& receipt);

}  // namespace taskcell::gateway
