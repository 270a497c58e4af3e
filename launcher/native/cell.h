#pragma once

#include <signal.h>

#include <optional>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/job.h"
#include "launcher/cgroup/run_cgroup.h"
#include "launcher/native/id_maps.h"
#include "launcher/native/mount_source.h"
#include "launcher/sys/process.h"

namespace taskcell::native {

struct CellOrders {
  const cell::CellPlan* plan = nullptr;
  const std::vector<DetachedMount>* detached = nullptr;  // of the plan's mounts, those made already
  UserNamespaceMode user_namespace = UserNamespaceMode::kAuto;
  int init = -1;                          // taskcell-init, O_PATH
  UniqueFd gate;                          // the end init gets; consumed
  const sigset_t* signal_mask = nullptr;  // the mask init starts with
  int stop_fd = -1;  // readable: the cell is no longer wanted (code stopped); -1: never
  cell::JobStdio stdio = cell::JobStdio::kRelay;  // what the job will ask for
  int output = -1;  // what the cell gets as 1 and 2; -1: the caller's own
  int errors = -1;
  std::string cgroup_parent;  // empty: the own cgroup, or the delegated one
};

// A native cell: taskcell-init runs as PID 1 of namespaces built from a plan, in a cgroup that
// limits it, and nothing else runs there yet. The destructor kills all of it and removes the
// cgroup.
class NativeCell {
 public:
  // Builds the cell and returns when taskcell-init was executed. Faults of the isolation come
  // before faults of the limits: where the cgroup can't be made the isolation is tried without it,
  // and that one's Error wins. After an Error nothing is left.
  static Result<NativeCell> Make(CellOrders orders);

  pid_t pid() const { return init_.pid(); }
  sys::Child& init() { return init_; }
  cgroup::RunCgroup& cgroup() { return cgroup_; }
  const cgroup::RunCgroup& cgroup() const { return cgroup_; }
  const OutsideIds& outside() const { return outside_; }
  bool proc_is_subset() const { return proc_is_subset_; }
  bool keyring_stays() const { return keyring_stays_; }

 private:
  NativeCell(sys::Child init, cgroup::RunCgroup cgroup, OutsideIds outside, bool subset,
             bool keyring_stays)
      : cgroup_(std::move(cgroup)),
        init_(std::move(init)),
        outside_(outside),
        proc_is_subset_(subset),
        keyring_stays_(keyring_stays) {}

  // In this order: the processes go before their cgroup does.
  cgroup::RunCgroup cgroup_;
  sys::Child init_;
  OutsideIds outside_;
  bool proc_is_subset_;
  bool keyring_stays_;
};

}  // namespace taskcell::native
