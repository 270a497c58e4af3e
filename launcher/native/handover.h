#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cgroup/run_cgroup.h"

namespace taskcell::native {

// What the parent tells the cell's child after the clone, over a packet pair: first, unless the
// child maps its own ids, that the maps are written; then its cgroup. Where the pair is closed in
// place of the cgroup there is none, and the child only tries whether everything else can be made.

Status TellMapsWritten(int channel);
// False when the parent is gone.
Result<bool> AwaitMaps(int channel);

// A descriptor for taskcell-init, and the name init is told it by.
struct InitLimitFile {
  std::string name;
  UniqueFd fd;
};

struct Handover {
  std::vector<UniqueFd> entries;  // the child writes itself into each (RunCgroup::Enter)
  std::vector<InitLimitFile> limit_files;
};

// `with_unified`: the child was not born in the cgroup of the unified hierarchy.
Status HandOver(int channel, const cgroup::RunCgroup& cgroup, bool with_unified);
Result<std::optional<Handover>> ReceiveHandover(int channel);

}  // namespace taskcell::native
