#pragma once

#include <vector>

#include "gateway/ledger/ledger.h"
#include "launcher/base/json_text.h"

namespace taskcell::gateway {

// The members of a task's JSON object: id, agent, kind, state, code, message and the three times.
void PutTask(JsonText& json, const TaskRow& task);

// Its member "runs".
void PutRuns(JsonText& json, const std::vector<RunRow>& runs);

}  // namespace taskcell::gateway
