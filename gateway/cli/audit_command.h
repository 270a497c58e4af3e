#pragma once

#include <string>

namespace taskcell::gateway {

// Says whether the receipts of a home are what was written, and which line is not. Returns the exit
// status: 0 when all are, 1 when not, 2 when there is no such home or it cannot be read.
int AuditVerifyCommand(const std::string& home_option, bool json);

}  // namespace taskcell::gateway
