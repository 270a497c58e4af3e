#pragma once

#include <vector>

#include "probe/delegate/plan.h"

namespace taskcell::probe::delegate {

// All changes that hand `user` a directory of its own on one hierarchy, as on a host where nothing
// of it is there: `<mount point>/taskcell/uid-<uid>`. Of a v1 directory only the directory itself
// is given away, so that the limit files in it stay root's. On the unified hierarchy the
// controllers are turned on down to it, and the files by which a cgroup is delegated (cgroups(7))
// are given away with it, the same for `supervisor` in it, where the user's processes go. Pure.
std::vector<Change> DirectoriesOn(const cgroup::Chain& chain, const Target& user);

// Where the user's processes go on the unified hierarchy.
std::string SupervisorOn(const cgroup::Chain& chain, const Target& user);

// Adds what makes those directories again at each boot: a script, and what this host's init needs
// to run it; nothing where that is there. Pure.
void AddBoot(const Facts& facts, const std::vector<Change>& directories, Plan& plan);

// The files AddBoot looks at.
void ReadBootFacts(sys::FileTree& tree, const Target& user, FileFacts& files);

}  // namespace taskcell::probe::delegate
