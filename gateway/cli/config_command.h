#pragma once

#include <string>

namespace taskcell::gateway {

// `taskcell config check`: prints what is wrong with a home's configuration, one line each
// ("config.toml: [container.sandbox] pids must be at most 65536 (line 7)"), or as one JSON object.
// Returns the exit status: 0 nothing that a task is refused for, 1 something, 2 no such home.
int ConfigCheckCommand(const std::string& home_option, bool json);

}  // namespace taskcell::gateway
