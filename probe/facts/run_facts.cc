#include "probe/facts/run_facts.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cgroup/diagnosis.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/name.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMaxEntries = 4096;  // of one directory, its control files included

// Where there are processes, or it cannot be seen that there are none.
bool IsInUse(sys::FileTree& tree, const std::string& run) {
  for (const std::string& level : {run, Text(run, '/', cgroup::kCellName)}) {
    sys::FileSeen processes = tree.Read(level + "/cgroup.procs", cgroup::kMaxControlFileBytes);
    if (!processes.absent() && (!processes.present() || !Trim(processes.text).empty())) return true;
  }
  return false;
}

}  // namespace

RunFacts ReadRunFacts(sys::FileTree& tree, const cgroup::Situation& situation) {
  RunFacts facts;
  for (cgroup::Controller controller : cgroup::kControllers) {
    std::string place = cgroup::Diagnose(situation, controller).place;
    bool seen = std::find(facts.places.begin(), facts.places.end(), place) != facts.places.end();
    if (place.empty() || seen) continue;
    auto entries = tree.List(place, kMaxEntries);
    if (!entries.ok()) continue;
    facts.places.push_back(place);
    for (const sys::DirectoryEntry& entry : entries.value()) {
      if (!cgroup::IsRunName(entry.name)) continue;
      std::string run = Text(place, '/', entry.name);
      (IsInUse(tree, run) ? facts.running : facts.left).push_back(run);
    }
  }
  return facts;
}

}  // namespace taskcell::probe
