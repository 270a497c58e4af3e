#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "launcher/base/result.h"

namespace taskcell::mounts {

// What stands at the allowed names of an agent directory, without any content: name, inode, change
// time, size and links of everything. Where two of them are equal, and nothing in the first was
// changed after SettledBefore() of its time, nothing was changed in between: a write, a rename, a
// link, a new mode or owner each set a change time, and nobody but root can set one; not so where
// HasForeignTimes. What shows nowhere is what comes of an earlier open for writing: the rest of a
// write(2) that was under way, and stores through a shared mapping (a file system notes the first
// since it last wrote the page back, tmpfs none at any time). The copy asks for such files
// (sys::ReadLease).
struct Inventory {
  std::string text;             // one record after the other, in the order of the walk
  struct timespec newest = {};  // no earlier than the latest change in it (LatestOf)
};

// Walks without opening a file. Nothing where that cannot say it all: a directory that cannot be
// opened or is a mount, more than `max_entries` entries, or more than `max_depth` levels.
Result<std::optional<Inventory>> TakeInventory(int agent_dir_fd, std::size_t max_entries,
                                               int max_depth);

}  // namespace taskcell::mounts
