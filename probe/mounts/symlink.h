#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "probe/mounts/codes.h"

namespace taskcell::probe::audit {

// Where a symbolic link leads, seen from the directory it is in.
struct Leads {
  Code code = Code::kSymlinkUnresolved;
  std::string detail;  // for a person
};

// Follows the link `path` below the directory `root_fd`, never out of it and never through a link
// of /proc, and opens nothing for reading. `name` is its name below `dir_fd`. Where
// `may_lead_to` is given, an end inside counts as inside only when that says so of its path below
// `root_fd`.
Leads WhereLinkLeads(int root_fd, const std::string& path, int dir_fd, const std::string& name,
                     const std::function<bool(std::string_view)>& may_lead_to = {});

}  // namespace taskcell::probe::audit
