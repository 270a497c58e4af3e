#pragma once

#include <string>

#include "launcher/base/result.h"

namespace taskcell::native {

// Bounds of the walk through a --ro or --bind-rw source.
inline constexpr std::size_t kMaxWalkEntries = 200'000;
inline constexpr int kMaxWalkDepth = 64;

// Refuses a source that is or holds a socket, FIFO or device: through it a cell could talk to, or
// act on, what is outside (a container engine's socket is root). The host's /usr is not walked.
// What is past the bounds is refused too: nothing unseen is mounted. `path` is for messages.
Status CheckSource(int fd, const std::string& path);

}  // namespace taskcell::native
