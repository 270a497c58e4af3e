#pragma once

#include <cstdint>
#include <optional>

#include "launcher/base/result.h"
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

// Adds what one cgroup's files for `controller` say to `events`. Levels are combined by the larger
// count: depending on the kernel an event is booked where it happened, where the limit is, or from
// there up to the root, but never half here and half there. A missing file adds nothing.
Status AddEvents(int cgroup_fd, bool unified, Controller controller, Events& events);

// Reads the counters of the cgroups named by `outside.cgroups` (Observe made them), for a cell made
// by any engine, as long as its cgroup exists. A native cell lives in run-<id>/cell, and both
// levels are read. Counters that are not visible from here are an Error.
Result<Events> ReadEventsOf(const cell::OutsideAttestation& outside);
Result<Events> ReadEventsIn(const Layout& layout, const cell::OutsideAttestation& outside);

}  // namespace taskcell::cgroup
