#pragma once

#include <string>

#include "launcher/base/result.h"

namespace taskcell::mounts {

// Removes `name` below `dir_fd` and all that is in it: links are removed, never followed, nothing
// outside and nothing mounted is touched, read-only directories of the caller are opened up first.
// Fine when it does not exist. At most kMaxRemovedDepth levels and kMaxRemovedEntries entries a
// directory; more is an Error and leaves the rest.
inline constexpr int kMaxRemovedDepth = 64;
inline constexpr std::size_t kMaxRemovedEntries = 100000;
Status RemoveTree(int dir_fd, const std::string& name);

}  // namespace taskcell::mounts
