#pragma once

#include <array>
#include <string>

#include "launcher/cgroup/diagnosis.h"
#include "probe/print/print.h"

namespace taskcell::probe {

// A situation and what follows from it, in the order of cgroup::kControllers.
struct CgroupView {
  cgroup::Situation situation;
  std::array<cgroup::Diagnosis, cgroup::kControllerCount> limits;
};
CgroupView ViewOf(cgroup::Situation situation);

// Each chain that can hold a limit as a tree from the root to the leaf; below the level where it
// breaks for a controller, the file that must change and what to do.
std::string CgroupTree(const CgroupView& view, const TableStyle& style);

// The same as one JSON object.
std::string CgroupJson(const CgroupView& view);

}  // namespace taskcell::probe
