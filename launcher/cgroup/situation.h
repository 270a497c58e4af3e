#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/cgroup/layout.h"
#include "launcher/sys/file_tree.h"

namespace taskcell::cgroup {

// One cgroup directory: its owner, and each control file that matters with owner and text.
struct Level {
  std::string path;  // absolute
  sys::FileSeen directory;
  std::vector<std::pair<std::string, sys::FileSeen>> files;

  // A file that was never looked for is absent.
  const sys::FileSeen& File(std::string_view name) const;
  // The path of one of its files.
  std::string FilePath(std::string_view name) const;
};

// One hierarchy as it lies between what is mounted and a process's cgroup.
struct Chain {
  Hierarchy hierarchy;
  // Something else is mounted over the hierarchy: the files are not what mountinfo says.
  bool covered = false;
  // From the mount point down to the process's cgroup; empty where that is not visible here, or
  // lies deeper than any cgroup does.
  std::vector<Level> levels;
  // `taskcell` below the mount point and the user's directory in it, as far as they exist.
  std::vector<Level> prepared;

  // True when what is mounted is not the root of the hierarchy, as in a container: only the root
  // cgroup has no cgroup.type.
  bool mounted_below_root() const;
};

// What stands around the cgroups and decides who can change them.
struct Surroundings {
  uint32_t uid = 0;
  bool uid_known = false;
  std::string user;                // its login name, "" where it has none
  std::vector<uint32_t> groups;    // of the process, where it is known
  bool systemd = false;            // systemd is the service manager
  bool runtime_directory = false;  // /run/user/<uid> exists
  bool user_bus = false;           // and its D-Bus socket
  bool user_manager = false;       // user@<uid>.service has its cgroup, hence runs
  bool in_user_namespace = false;  // an outer namespace maps our ids
  bool in_container = false;       // what is mounted is only a part of a hierarchy
  bool host_has_swap = false;
  std::string command_line;    // the kernel's
  std::string kernel_cgroups;  // /proc/cgroups

  // The login name, or the number.
  std::string UserName() const { return user.empty() ? std::to_string(uid) : user; }
};

// Whose place is asked about.
struct Subject {
  std::optional<uint32_t> uid;   // else as /proc/self/status says
  std::string process = "self";  // a directory of /proc
  std::string cgroup_path;       // in place of the process's own, "" for that
  // In place of both: the cgroup of the user's own service manager where that runs, else the root
  // of what is mounted. What would hold for a user who is not here.
  bool user_manager = false;
};

// The cgroup of the user's own service manager, as a path in the unified hierarchy. Pure.
std::string UserManagerPath(uint32_t uid);

// All that the limits are decided from.
struct Situation {
  std::string
      problem;  // why the hierarchies could not be found; then nothing below holds but `around`
  Mode mode = Mode::kNone;
  std::vector<Chain> chains;  // of the unified hierarchy and of those that hold memory, pids or cpu
  Surroundings around;

  // As Layout::Find.
  const Chain* Find(std::string_view controller) const;
};

// Reads everything through `tree`; what cannot be read is left as unreadable, and no read is ever a
// failure. Nothing is written.
Situation ReadSituation(sys::FileTree& tree, const Subject& subject);

// Parts of it, for a caller that has the hierarchy already. Complete adds to `around` what a chain
// tells of its surroundings.
Surroundings ReadSurroundings(sys::FileTree& tree, const Subject& subject);
Chain ReadChain(sys::FileTree& tree, const Hierarchy& hierarchy, uint32_t uid);
void Complete(sys::FileTree& tree, const Chain& chain, Surroundings& around);

}  // namespace taskcell::cgroup
