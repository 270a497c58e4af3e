#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cgroup/layout.h"

namespace taskcell::cgroup {

inline constexpr uint64_t kUnlimited = cell::LimitsSeen::kUnlimited;

// Processor time: `quota_us` in every `period_us`.
struct CpuBandwidth {
  uint64_t quota_us = 0;  // or kUnlimited
  uint64_t period_us = 0;
  bool operator==(const CpuBandwidth&) const = default;
};

// How `cpu_millis` thousandths of a core (at least 1) are asked for: 100 ms periods, as engines do.
// The kernel refuses a quota below 1 ms, so below 10 thousandths the quota is 1 ms and the period
// is raised, at most to the kernel's longest, 1 s; it is rounded up, never giving more than asked.
// Pure.
CpuBandwidth PlanCpu(uint64_t cpu_millis);

// What one cgroup's own limit files say; nullopt: no such file. No limit is kUnlimited.
struct LevelLimits {
  std::optional<uint64_t> memory;
  std::optional<uint64_t> memory_and_swap;  // v1
  std::optional<uint64_t> swap;             // v2
  std::optional<uint64_t> pids;
  std::optional<CpuBandwidth> cpu;
  std::optional<uint64_t> io_weight;
  std::optional<std::string> cpu_set;
  std::optional<bool> oom_group;
};

// Parses one number of a limit file: "max", -1 and v1's largest page count are kUnlimited. nullopt
// when it is none. Pure.
std::optional<uint64_t> ParseLimit(std::string_view text);

// Reads the limit files of the cgroup `below` a directory ("" is the directory itself). A file that
// says something else than a limit is kViolation.
Result<LevelLimits> ReadLevel(int directory_fd, const std::string& below, bool unified,
                              Controller controller);

// Lowers `into` to the smaller of both, limit by limit. Processor time is compared as a share. Of
// weight and processors the first one stays: a level's own say all about it. Pure.
void Lower(LevelLimits& into, const LevelLimits& level);

// Puts the effective limits in the attestation's terms. Where nothing limits swap by a file and the
// host has none, memory and swap together are the memory. Pure.
cell::LimitsSeen ToSeen(const LevelLimits& effective, bool host_has_swap);

// True when /proc/swaps lists a device. `text` is the whole file. Pure.
bool ListsSwap(std::string_view text);

// Writes the limits of `controllers` into the cgroup and reads each back: a difference (but for the
// kernel's rounding of memory down to a page) is an Error, as is a host that has swap but does not
// account it. Swap is limited to nothing on top of memory, and the out-of-memory killer, which
// takes one process and not the whole cgroup, is on.
Status ApplyLimits(int cgroup_fd, bool unified, std::span<const Controller> controllers,
                   const cell::Limits& limits, bool host_has_swap);

// Bounds the buffers of TCP and UDP sockets in one v1 memory cgroup at `bytes`. v1 counts them
// apart from the memory, per cgroup and only where the counter has a limit, so it must be set on
// the very cgroup the sockets are made in. Nothing to do where the kernel has no such file.
Status ApplySocketMemoryV1(int cgroup_fd, uint64_t bytes);

}  // namespace taskcell::cgroup
