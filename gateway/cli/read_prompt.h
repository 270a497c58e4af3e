#pragma once

#include <string>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// The prompt as the command line has it, or of standard input where that says "-". Error code
// invalid_prompt when there is more than a prompt may have.
Result<std::string> ReadPrompt(const std::string& prompt);

}  // namespace taskcell::gateway
