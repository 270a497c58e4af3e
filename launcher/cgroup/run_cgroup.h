#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cgroup/events.h"
#include "launcher/cgroup/layout.h"
#include "launcher/cgroup/place.h"

namespace taskcell::cgroup {

// One limit file of the cgroup that limits the cell. Names: memory, memsw, swap, pids, cpu_quota,
// cpu_period, cpu_max, cpu_set, io_weight.
struct LimitFile {
  std::string_view name;
  UniqueFd fd;  // read-only
};

// The cgroups of one native cell: on each hierarchy that holds memory, pids or cpu, and cpuset or
// io where those are asked for, a cgroup `run-<run id>` with the limits and below it `cell`, where
// the processes go and which becomes the root of the cell's cgroup namespace: what limits the cell
// lies outside of what it could ever see. Owns them: the destructor kills what runs there and
// removes them. Every descriptor is CLOEXEC.
class RunCgroup {
 public:
  // Makes both levels in the delegated place of each hierarchy (place.h), writes the limits and
  // reads them back. `run_id` is 32 lowercase hex digits. Anything that can't be enforced is an
  // Error with the code "resource_limits_unenforced" that names the controller, the file and who
  // must do what; then nothing is left behind. Cgroups of this caller's earlier runs whose owner
  // died are removed on the way. `parent` as in FindPlace.
  static Result<RunCgroup> Make(const std::string& run_id, const cell::Limits& limits,
                                const std::string& parent = "");
  static Result<RunCgroup> MakeIn(Layout layout, const std::string& run_id,
                                  const cell::Limits& limits, const std::string& parent = "");

  RunCgroup(RunCgroup&&) noexcept = default;
  RunCgroup& operator=(RunCgroup&&) = delete;
  ~RunCgroup();

  // The directory of `cell` on the unified hierarchy for clone3's CLONE_INTO_CGROUP, or -1 when
  // every limit is on v1. Owned by this object.
  int clone_fd() const;

  // False where the limits allowed that the cpu controller is missing, and it is.
  bool limits_cpu() const;

  // Files through which a process moves itself into the cell: as its only thread it writes "0" into
  // each (Enter), before it changes its ids. For v1, and for the unified hierarchy too when
  // `with_unified` (no CLONE_INTO_CGROUP). Much cheaper than Place on v1, where moving another
  // process stops every fork and exit on the host for a moment (cgroup_threadgroup_rwsem).
  Result<std::vector<UniqueFd>> OpenEntries(bool with_unified) const;
  static Status Enter(int entry_fd);

  // Moves another process, all threads of it, into the cell on every hierarchy. v1 allows it only
  // for a process with the caller's own kernel uid.
  Status Place(pid_t pid) const;

  // Read-only descriptors of the limit files of `run-<id>`.
  Result<std::vector<LimitFile>> OpenLimitFiles() const;

  // observe.h's Observe for a process of the cell, with what Make read before.
  Result<cell::OutsideAttestation> Observe(pid_t pid) const;

  // The files that count what befalls the cell; they stay readable as long as it exists.
  Result<EventFiles> OpenEventFiles() const;
  Result<Events> ReadEvents() const;

  // Kills every process of the cell, without waiting for them to be gone.
  Status Kill() const;

  // Kills what is left and removes both levels everywhere, waiting at most kRemoveTimeoutMs a
  // hierarchy for dead processes to go. Called again it tries what is left.
  Status Remove();
  static constexpr int kRemoveTimeoutMs = 5000;

 private:
  // One hierarchy's share.
  struct Branch {
    cgroup::Place place;
    std::vector<Controller> controllers;
    UniqueFd run;
    UniqueFd cell;
  };

  RunCgroup(std::string name, Layout layout, bool host_has_swap)
      : name_(std::move(name)), layout_(std::move(layout)), host_has_swap_(host_has_swap) {}
  Status AddBranch(cgroup::Place place, const std::vector<Controller>& controllers,
                   const cell::Limits& limits);

  std::string name_;  // run-<id>
  Layout layout_;
  bool host_has_swap_;
  std::vector<Branch> branches_;
};

}  // namespace taskcell::cgroup
