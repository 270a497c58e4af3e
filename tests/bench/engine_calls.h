#pragma once

#include <string>

namespace taskcell::bench {

// Makes, starts, waits for and removes one container of `image` over a Docker engine's socket, with
// limits and a locked-down configuration, and nothing else: the least that any use of the engine
// costs. Returns 0, or 1 with the engine's answer on stderr.
int RunOverEngine(const std::string& socket_path, const std::string& image);

}  // namespace taskcell::bench
