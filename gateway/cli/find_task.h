#pragma once

#include <string>

#include "gateway/ledger/ledger.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// The task whose id begins with `id`; kSystem where there is none or more than one.
Result<TaskRow> FindTask(Ledger& ledger, const std::string& id);

}  // namespace taskcell::gateway
