#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/attestation.h"
#include "launcher/cgroup/layout.h"

namespace taskcell::cgroup {

// What the kernel counted for one cell, over its whole life.
struct Events {
  uint64_t oom_kills = 0;      // processes killed because the memory limit was reached
  uint64_t pids_refusals = 0;  // forks refused because the pids limit was reached
  std::optional<uint64_t> peak_memory_bytes;  // nullopt: this kernel keeps none (v2 before 5.19)
  std::optional<uint64_t> cpu_us;             // nullopt: v1 without cpuacct where it could be read
  std::optional<uint64_t> cpu_throttles;      // periods in which the cpu limit held something back
};

// The files that count, of the cgroups of one cell, held open: the reading at the end of a run is
// then a few preads. Levels are combined by the larger count: depending on the kernel an event is
// booked where it happened, where the limit is, or from there up to the root, but never half here
// and half there.
class EventFiles {
 public:
  // Opens those of `controller` in one more cgroup. A file this kernel lacks counts nothing.
  Status Add(int cgroup_fd, bool unified, Controller controller);
  // The counts as they are now.
  Result<Events> Read() const;

  struct Source;  // what a file counts

 private:
  struct File {
    const Source* source;
    UniqueFd fd;
  };
  std::vector<File> files_;
};

// Reads the counters of the cgroups named by `outside.cgroups` (Observe made them), for a cell made
// by any engine, as long as its cgroup exists. A native cell lives in run-<id>/cell, and both
// levels are read. Counters that are not visible from here are an Error.
Result<Events> ReadEventsOf(const cell::OutsideAttestation& outside);
Result<Events> ReadEventsIn(const Layout& layout, const cell::OutsideAttestation& outside);

}  // namespace taskcell::cgroup
