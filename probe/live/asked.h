#pragma once

#include <cstdint>
#include <string>

#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"

namespace taskcell::live {

// The limits a probe's cell is made with: small, since each is going to be reached. The processor
// time most of all: on a busy host the cell would not get more than half a core anyway.
struct Asked {
  cell::Limits limits = {uint64_t{64} << 20U, 64, 200, 256};
  uint64_t output_bytes = uint64_t{1} << 20U;  // of one task; kept by whoever reads it
  uint64_t deadline_ms = 150;
};

inline constexpr uint64_t kLeastProbeMemory = uint64_t{32} << 20U;
inline constexpr uint64_t kMostProbeMemory = uint64_t{512} << 20U;
inline constexpr uint64_t kLeastProbePids = 8;
inline constexpr uint64_t kMostProbePids = 256;
inline constexpr uint64_t kLeastProbeCpuMillis = 50;
inline constexpr uint64_t kMostProbeCpuMillis = 16'000;

// kUsage, naming the option and what is taken, for limits a probe could not reach within its time,
// or that stand in each other's way. Pure.
Status CheckAsked(const Asked& asked);

// The size of each writable file system of the cell: it counts against the memory limit. Pure.
uint64_t TmpfsBytes(const Asked& asked);

// How long reaching the limits may take altogether: tens of times what it does, since an emulated
// processor is that much slower. Every attempt is bounded by itself; this ends one that hangs.
// Pure.
uint64_t LimitsDeadlineMs(const Asked& asked);

// The plan of a probe's cell but for its run id, its root and the program in it. Pure.
cell::CellPlan PlanProbe(const Asked& asked, uint32_t uid, uint32_t gid);

}  // namespace taskcell::live
