#pragma once

#include <optional>
#include <string>

#include "launcher/cgroup/situation.h"
#include "probe/facts/unit_file.h"

namespace taskcell::probe {

// What systemd has been told about the user and about the unit this process is in; all from files,
// without asking a bus.
struct SystemdFacts {
  std::string version;      // "252", "" where it is not known
  Unit user_manager;        // user@UID.service
  std::optional<Unit> own;  // the system service this process is in
  bool lingers = false;     // the user's manager runs without a login
  bool user_manager_runs = false;
  std::string delegated;  // what the user manager's cgroup has now: cgroup.controllers
  std::string delegated_path;
};

// Reads nothing where `situation` knows no systemd.
SystemdFacts ReadSystemdFacts(sys::FileTree& tree, const cgroup::Situation& situation);

}  // namespace taskcell::probe
