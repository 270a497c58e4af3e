#pragma once

#include <string>
#include <vector>

#include "launcher/cgroup/situation.h"
#include "launcher/sys/file_tree.h"

namespace taskcell::probe {

// The cgroups of cells, below the directories in which this user's cells are made.
struct RunFacts {
  std::vector<std::string> places;   // those that were listed
  std::vector<std::string> running;  // cgroups of cells that hold processes
  std::vector<std::string> left;     // and of those that hold none
};

RunFacts ReadRunFacts(sys::FileTree& tree, const cgroup::Situation& situation);

}  // namespace taskcell::probe
