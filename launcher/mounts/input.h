#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/mounts/snapshot.h"

namespace taskcell::mounts {

inline constexpr std::size_t kMaxInputPaths = 64;

// Copies the files and directories at `paths` into the empty directory `target_dir_fd` (mode 0700,
// the caller's own; 0555 when done), each under its last name. Nobody but root and this user may be
// able to exchange a part of the way to one. Everything must be a plain file (copied as 0444) or
// directory (0555), as in a snapshot of an agent directory, and is judged and copied the same way;
// but where that leaves something out, this is an Error that names it: these were asked for. So are
// two of one name, and more than the bounds. Error code invalid_input; after one the target holds
// a part of the copy.
Status CopyInputs(const std::vector<std::string>& paths, int target_dir_fd,
                  const SnapshotBounds& bounds = {});

}  // namespace taskcell::mounts
