#pragma once

#include <cstdint>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::native {

// Makes a detached tmpfs mount that belongs to nobody's mount tree, and in which the caller, with
// its own ids, may write through the descriptor: until it is attached somewhere, nobody else can
// reach it, and it goes with its last descriptor. It is made in a user namespace of its own by a
// short-lived process, since only that lets an ordinary user make one. The root is the caller's
// alone (0700). An Error with err ENOSYS: a kernel or a filter lacks one of the mount calls, and a
// cell that is made without them could not take it.
Result<UniqueFd> MakePrivateTmpfs(uint64_t size_bytes, uint64_t max_inodes);

}  // namespace taskcell::native
