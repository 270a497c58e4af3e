#pragma once

#include <signal.h>

#include <vector>

#include "launcher/cell/cell_plan.h"
#include "launcher/cell/job.h"
#include "launcher/native/id_maps.h"
#include "launcher/native/mount_source.h"

namespace taskcell::native {

// Everything the cell's first process works from; made by the parent before the clone.
struct ChildOrders {
  const cell::CellPlan* plan = nullptr;
  const std::vector<DetachedMount>* detached = nullptr;  // mounts of the plan that need no source
  OutsideIds outside;
  int init = -1;                          // taskcell-init, O_PATH
  int gate = -1;                          // init's end of the gate
  int channel = -1;                       // what the parent says later (handover.h), CLOEXEC
  int report = -1;                        // write end for ChildReport, CLOEXEC
  const sigset_t* signal_mask = nullptr;  // restored before exec
  cell::JobStdio stdio = cell::JobStdio::kRelay;
  bool classic_mounts = false;  // by mount(2) alone: one of the newer calls is missing
  int filter = -1;              // holds the plan's own; -1: it has none
  int output = -1;              // become 1 and 2; -1: as they are
  int errors = -1;
};

// The life of the cell's PID 1 from clone to exec, one stage after the other; never returns. On a
// failure it reports the stage and leaves. Runs with one thread, in the new namespaces, as the
// caller's user.
[[noreturn]] void RunChild(const ChildOrders& orders);

}  // namespace taskcell::native
