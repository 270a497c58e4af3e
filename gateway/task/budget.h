#pragma once

#include <memory>

#include "gateway/config/home.h"
#include "gateway/egress/purse.h"
#include "gateway/task/admission.h"
#include "gateway/task/task.h"
#include "gateway/task/task_record.h"

namespace taskcell::gateway {

// Has the broker relay the payer's requests only as long as its month's budget lasts, whatever
// other tasks of this process pay from it meanwhile. Nothing where the account has no budget or
// nothing has a price. Error code workspace_failed. What it returns is to be held until the ledger
// knows what the run cost: whoever begins sooner would find that in neither of the two.
Result<std::shared_ptr<Purse>> HoldToBudget(const Home& home, const Admission& admission,
                                            Surroundings& surroundings, TaskRecord& record,
                                            Payer& payer);

}  // namespace taskcell::gateway
