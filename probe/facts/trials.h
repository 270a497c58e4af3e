#pragma once

#include <string>
#include <vector>

#include "launcher/sys/file_tree.h"
#include "probe/facts/live_facts.h"

namespace taskcell::probe {

// What the trials need to know of the host.
struct TrialGround {
  std::string
      cgroup_directory;     // of the own cgroup on the unified hierarchy, "" where there is none
  std::string home;         // a directory of the user's, "" where there is none
  std::string filesystems;  // /proc/filesystems: what is not listed is not tried, because
                            // trying would load a module
};

// Tries each feature of the kernel in a child process, so that whatever a trial does to a process
// ends with it, and a filter that kills is survived. Nothing on the host changes: what is mounted
// is never attached. The calling process must have one thread.
std::vector<Trial> TryFeatures(const TrialGround& ground);

// The name of an error number, "EPERM"; "" for 0.
std::string ErrorName(int err);

}  // namespace taskcell::probe
