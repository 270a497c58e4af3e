#pragma once

#include <sys/types.h>

#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// Makes the directory `name` below `parent_fd` and takes its lock, which tells whoever tidies up
// there that its owner lives. Another process of this user can take it for a leftover until then
// and remove it: then it is made again, for two seconds (EBUSY). EEXIST where it was there before.
// In between anybody could have made one of that name, so only one of this user's is returned.
Result<UniqueFd> MakeLockedDirectory(int parent_fd, const std::string& name, mode_t mode);

}  // namespace taskcell::sys
