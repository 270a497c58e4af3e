#pragma once

#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"

namespace taskcell::native {

// What stands in for the caller's standard stream `fd`.
struct StreamFile {
  int fd = -1;
  UniqueFd file;
};

// What has no name any more is copied, up to this size.
inline constexpr std::size_t kMaxNamelessBytes = std::size_t{16} << 20U;

// A file is given as 0, 1 or 2 to be read, a terminal to be read and written; but whoever has the
// kernel id of its owner could change its mode and times through the descriptor, and open it anew
// by /proc/self/fd for writing. So each such file is opened once more, on a read-only copy of its
// mount and at the same place in it: the same content, and nothing of it can be changed. A file
// without a name is copied into memory. One that cannot be found by its name is refused, unless the
// cell's ids can do it nothing. In the namespaces of the cell to be, whose ids are mapped, under
// the caller's own kernel ids: what belongs to nobody in the cell shows as another id than the
// plan's.
Result<std::vector<StreamFile>> GuardStreams(const cell::CellPlan& plan);

}  // namespace taskcell::native
