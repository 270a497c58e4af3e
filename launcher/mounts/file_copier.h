#pragma once

#include <sys/stat.h>

#include <string>

#include "launcher/base/result.h"
#include "launcher/mounts/link_scan.h"

namespace taskcell::mounts {

// Copies files that were judged.
class FileCopier {
 public:
  // Copies `from`, whose fstat was `before`, to the new file `name` of `to_dir` (0444). False when
  // the file was changed, or got a link, while it was copied: then there is no target. A file with
  // several names is copied where `links` says of it, after the copy, that all of them are inside.
  Result<bool> CopyOnce(int to_dir, const std::string& name, int from, const struct stat& before,
                        const LinkScan* links);

 private:
  Result<bool> CopyBytes(int to, int from, uint64_t size);

  bool can_clone_ = true;  // until it could not once
};

}  // namespace taskcell::mounts
