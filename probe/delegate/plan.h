#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cgroup/diagnosis.h"
#include "launcher/cgroup/situation.h"
#include "launcher/sys/file_tree.h"
#include "probe/delegate/change.h"
#include "probe/facts/file_facts.h"
#include "probe/facts/systemd_facts.h"

namespace taskcell::probe::delegate {

// Whom limits are to be delegated to.
struct Target {
  std::string name;
  uint32_t uid = 0;
  uint32_t gid = 0;
};

// What a plan is made from: the cgroups as the user's own would lie in them, what systemd was told,
// and the files and directories a plan may write.
struct Facts {
  cgroup::Situation cgroups;
  SystemdFacts systemd;
  FileFacts files;
};
Facts ReadFacts(sys::FileTree& tree, const Target& user);

// A part of the plan that stands or falls together.
struct Step {
  std::string what;
  std::string why;
  std::vector<Change> changes;
};

// What no step here can mend.
struct Obstacle {
  std::string reason;
  cgroup::Who who = cgroup::Who::kNone;
  std::string fix;
};

// What is left to a person.
struct Note {
  std::string text;
  bool pending = false;  // until it is done the limits do not hold
};

struct Plan {
  Target user;
  cgroup::Mode mode = cgroup::Mode::kNone;
  std::vector<Step> steps;  // in their order; none where nothing is missing
  std::vector<Obstacle> obstacles;
  std::vector<Note> notes;
  // How a program of the user's comes to a delegated cgroup: in a scope of the user's own manager,
  // or because root puts it into each of these.
  bool by_manager = false;
  std::vector<std::string> supervisors;

  // True when limits hold for the user already, as far as files tell.
  bool complete() const;
};

// What makes limits hold for the user on this host, and what stays in the way. On the unified
// hierarchy of a systemd host: the user's service manager, given what taskcell limits; elsewhere:
// a directory on each hierarchy that holds memory, pids or cpu, made again at each boot. Pure.
Plan MakePlan(const Facts& facts, const Target& user);

}  // namespace taskcell::probe::delegate
