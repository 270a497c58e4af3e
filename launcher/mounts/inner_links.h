#pragma once

#include <string>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::mounts {

// The symbolic links of a snapshot. They are made first, as they are, and kept only where they lead
// to something in the finished snapshot: it cannot be changed by anybody else, so what was found of
// it is what a cell sees.
class InnerLinks {
 public:
  // Copies the link `name` of `from_dir` into `to_dir` of the snapshot, where it is `path` from the
  // snapshot's root on. What the link says is all that is taken: it is not followed. False when it
  // is no link any more.
  Result<bool> Copy(int to_dir, int from_dir, const std::string& name, const std::string& path);

  // Forgets the links below the entry `top`, which was removed.
  void Forget(const std::string& top);

  struct Removed {
    std::string path;
    std::string why;
  };
  // Removes every link that leads out of the snapshot, to nothing, or nobody can tell where; to be
  // called again after anything else was removed. After an Error the snapshot must not be used.
  Result<std::vector<Removed>> RemoveUnsafe(int snapshot_fd);

 private:
  std::vector<std::string> paths_;
};

}  // namespace taskcell::mounts
