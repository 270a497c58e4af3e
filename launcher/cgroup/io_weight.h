#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::cgroup {

// The files that hold a cgroup's weight: BFQ's own, and that of io.cost.
inline constexpr char kBfqWeightV1[] = "blkio.bfq.weight";
inline constexpr char kBfqWeightV2[] = "io.bfq.weight";
inline constexpr char kCostWeightV2[] = "io.weight";

// Shares a busy disk's time out by weight. Two parts of the kernel do so, each for the disks it is
// switched on for: the BFQ scheduler (the weight in its own file, v1 and v2) and, on v2,
// io.cost. Where neither is on for any disk a weight means nothing, and setting it is an Error.
Status ApplyIoWeight(int cgroup_fd, bool unified, uint64_t weight);

// The weight in the cgroup `prefix` ("" or "a/b/") below the directory; nothing where there is no
// such file.
Result<std::optional<uint64_t>> ReadIoWeight(int directory_fd, const std::string& prefix,
                                             bool unified);

// "100" or "default 100" and lines for single disks. Pure.
std::optional<uint64_t> ParseIoWeight(std::string_view text);

// Whether the text of a disk's queue/scheduler has BFQ switched on. Pure.
bool IsScheduledByBfq(std::string_view scheduler);
// Whether the text of io.cost.qos has io.cost on for a disk. Pure.
bool IsSharedByCost(std::string_view qos);

}  // namespace taskcell::cgroup
