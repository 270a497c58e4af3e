#pragma once

#include <string>

#include "probe/mounts/codes.h"

namespace taskcell::probe::audit {

// Where a symbolic link leads, seen from the directory it is in.
struct Leads {
  Code code = Code::kSymlinkUnresolved;
  std::string detail;  // for a person
};

// Follows the link `path` below the directory `root_fd`, never out of it and never through a link
// of /proc, and opens nothing for reading. `name` is its name below `dir_fd`. A path of PATH_MAX
// bytes or more is resolved one component at a time; where that takes more descriptors than there
// are it is kSymlinkUnresolved.
Leads WhereLinkLeads(int root_fd, const std::string& path, int dir_fd, const std::string& name);

}  // namespace taskcell::probe::audit
