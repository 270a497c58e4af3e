#pragma once

#include "launcher/base/result.h"
#include "launcher/native/cell_root.h"

namespace taskcell::native {

// The cell's own /proc.
struct ProcTree {
  UniqueFd mount;
  bool subset = false;  // only the processes part (subset=pid): the kernel refused the whole
};

// Mounts a proc of the calling pid namespace at /proc, hidepid=invisible, with the parts that tell
// about or act on the whole host hidden or read-only. Where the kernel refuses a whole one (the
// caller's own /proc is covered in places: a container), or with `subset`, the processes part
// alone.
Result<ProcTree> MakeProcTree(CellRoot& root, bool subset);

// Covers the host-wide parts. After MakeDeviceTree, since hidden files show /dev/null.
Status MaskProcTree(CellRoot& root, const ProcTree& proc);

// Writes the limits of the cell's user namespace: no user namespace below it, and few inotify
// objects (the kernel counts those per uid, also the uid's processes outside). Before MaskProcTree,
// which makes them read-only.
Status WriteNamespaceSysctls(const ProcTree& proc);

inline constexpr char kInotifyInstances[] = "32";
inline constexpr char kInotifyWatches[] = "4096";

}  // namespace taskcell::native
