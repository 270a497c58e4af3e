#pragma once

#include <cstdint>
#include <optional>

#include "launcher/cell/attestation.h"

namespace taskcell::cgroup {

// What the kernel counted for one cell, over its whole life.
struct Events {
  uint64_t oom_kills = 0;      // processes killed because the memory limit was reached
  uint64_t pids_refusals = 0;  // forks refused because the pids limit was reached
  std::optional<uint64_t> peak_memory_bytes;  // nullopt: this kernel keeps none (v2 before 5.19)
  std::optional<uint64_t> cpu_us;  // nullopt: v1 without cpuacct in a hierarchy that is ours
};

// Reads the counters of the cgroups named by `outside.cgroups` (Observe made them), for a cell made
// by any engine, as long as its cgroup exists. A cell of ours lives in run-<id>/cell and both
// levels count: depending on the kernel an event is booked where it happened or where the limit is.
Result<Events> ReadEventsOf(const cell::OutsideAttestation& outside);

}  // namespace taskcell::cgroup
