#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/native/mount_table.h"

namespace taskcell::native {

// A detached copy of a piece of the host's mount tree, waiting to be attached at `target` of the
// cell's root.
struct MountSource {
  std::string target;
  cell::EntryKind kind = cell::EntryKind::kDirectory;
  UniqueFd tree;
  bool writable = false;
};

// A mount of the plan that stands nowhere in a mount tree: `tree` is attached itself at `target`,
// or, where `file` is not empty, the file of that name in it alone.
struct DetachedMount {
  std::string target;
  UniqueFd tree;
  std::string file = {};
};

// A directory of the host that nothing of the plan is in or below, for sys::UseClassicMounts to
// cover in the calling mount namespace.
Result<std::string> FindStage(const cell::CellPlan& plan);

// Opens `path` of the calling mount namespace following no link of any kind (openat2), O_PATH.
Result<UniqueFd> PinPath(const std::string& path);

// Opens the planned source again in this mount namespace (a descriptor of the plan's maker belongs
// to another one, and a mount can be copied only from one's own), refuses it unless it is the very
// inode of the plan and of its kind, and detaches a copy: read-only unless the plan says writable,
// nosuid and nodev throughout. CRITICAL: it is the maker's pin on the inode that makes device and
// inode number mean the same file here. What MountTable refuses is refused here, where no mount of
// the host arrives any more.
Result<MountSource> TakePlannedMount(const cell::PlannedMount& mount, const MountTable& mounts);

// Takes a detached mount instead, with the same refusals and under the same attributes. Of the tree
// of a file nothing but that is left.
Result<MountSource> TakeDetachedMount(const cell::PlannedMount& mount,
                                      const DetachedMount& detached);

// Opens a kRootfs plan's root directory again, with the same refusals.
Result<UniqueFd> PinRootDirectory(const cell::CellPlan& plan);

// That directory, detached as TakePlannedMount does it (target "/").
Result<MountSource> TakeRootDirectory(const cell::CellPlan& plan, const MountTable& mounts);

// Detaches a read-only, nosuid, nodev copy of what `fd` stands for, at the canonical `path`, with
// the same refusals.
Result<UniqueFd> CloneReadOnly(int fd, const std::string& path, const MountTable& mounts);

}  // namespace taskcell::native
