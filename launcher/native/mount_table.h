#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/base/mount_info.h"
#include "launcher/base/result.h"

namespace taskcell::native {

// The mounts of the calling mount namespace. A piece of it is cloned with all that is mounted below
// it, which a look at its top or a walk (a single file may be mounted over, too) does not find.
class MountTable {
 public:
  static Result<MountTable> Read();
  explicit MountTable(std::vector<MountInfoLine> lines) : lines_(std::move(lines)) {}

  // CRITICAL: refuses what `fd` stands for, at the canonical `path`, when it is on a file system
  // through which the kernel itself is read or driven, or has one below it: a cell that gets at its
  // cgroup files could lift its limits; one that gets at /proc, the launcher's descriptors.
  Status CheckShown(int fd, const std::string& path) const;

 private:
  std::vector<MountInfoLine> lines_;
};

}  // namespace taskcell::native
