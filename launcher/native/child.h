#pragma once

#include <signal.h>

#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/native/id_maps.h"

namespace taskcell::native {

// A descriptor that taskcell-init is given, and the name it is told it by.
struct InitLimitFile {
  std::string_view name;
  int fd;
};

// Everything the cell's first process works from; made by the parent before the clone.
struct ChildOrders {
  const cell::CellPlan* plan = nullptr;
  OutsideIds outside;
  bool trial = false;     // stop before exec and report kReady
  int init = -1;          // taskcell-init, O_PATH; -1 in a trial
  int gate = -1;          // init's end of the gate; -1 in a trial
  int maps_written = -1;  // read end: one byte when the parent wrote the id maps (not for kOwn)
  int report = -1;        // write end for ChildReport, CLOEXEC
  std::vector<int> cgroup_entries;  // the child writes itself into each (RunCgroup::Enter)
  std::vector<InitLimitFile> limit_files;
  const sigset_t* signal_mask = nullptr;  // restored before exec
};

// The life of the cell's PID 1 from clone to exec, one stage after the other; never returns. On a
// failure it reports the stage and leaves. Runs with one thread, in the new namespaces, as the
// caller's user.
[[noreturn]] void RunChild(const ChildOrders& orders);

}  // namespace taskcell::native
