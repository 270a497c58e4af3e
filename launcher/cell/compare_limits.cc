#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cell/compare_parts.h"

namespace taskcell::cell {
namespace {

constexpr uint64_t kUnlimited = LimitsSeen::kUnlimited;

std::string Show(const std::optional<uint64_t>& limit) {
  if (!limit) return "no limit file";
  return *limit == kUnlimited ? "unlimited" : std::to_string(*limit);
}

// The kernel keeps memory limits in whole pages, rounded down.
bool IsMemory(uint64_t planned, uint64_t seen) {
  for (uint64_t page : {4096U, 16384U, 65536U}) {
    if (seen == planned / page * page) return true;
  }
  return false;
}

bool IsExactly(uint64_t planned, uint64_t seen) { return seen == planned; }

// Compares one limit. What is read inside is the cell's own file and must be the planned figure; a
// file that is not there (an engine that shows no cgroups, a hierarchy without it) is no proof of
// anything. Outside is the smallest from the cell up to the root, so it may be lower where
// something around the cell is tighter, but only when the inside proved the cell's own.
template <typename Same>
void CompareOne(std::string_view field, uint64_t planned, const std::optional<uint64_t>& inside,
                const std::optional<uint64_t>& outside, Same same, Mismatches& found) {
  std::string wanted = std::to_string(planned);
  if (inside && !same(planned, *inside)) {
    found.AddLimit(std::string(field), wanted, Text(Show(inside), " inside"));
    return;
  }
  bool exact = outside && same(planned, *outside);
  bool tighter = inside && outside && *outside < planned;
  if (!exact && !tighter) {
    found.AddLimit(std::string(field), wanted, Text(Show(outside), " outside"));
  }
}

// Thousandths of one core, in the period the quota is given for, rounded to a microsecond either
// way: as a quota per second, so that figures of different periods compare.
struct Cpu {
  std::optional<uint64_t> quota_us;
  std::optional<uint64_t> period_us;
};

Cpu CpuOf(const LimitsSeen& limits) { return {limits.cpu_quota_us, limits.cpu_period_us}; }

std::string Show(const Cpu& cpu) {
  if (!cpu.quota_us || !cpu.period_us) return "no limit file";
  if (*cpu.quota_us == kUnlimited) return "unlimited";
  return Text(*cpu.quota_us, " us in ", *cpu.period_us, " us");
}

enum class CpuIs { kMissing, kTighter, kSame, kLooser };

CpuIs Judge(uint64_t millis, const Cpu& cpu) {
  constexpr uint64_t kLongestPeriodUs = 1'000'000;  // the kernel's own bound
  constexpr uint64_t kMillisPerCore = 1000;
  if (!cpu.quota_us || !cpu.period_us) return CpuIs::kMissing;
  if (*cpu.quota_us == kUnlimited) return CpuIs::kLooser;
  if (*cpu.period_us == 0 || *cpu.period_us > kLongestPeriodUs) return CpuIs::kMissing;
  uint64_t down = millis * *cpu.period_us / kMillisPerCore;
  uint64_t up = (millis * *cpu.period_us + kMillisPerCore - 1) / kMillisPerCore;
  if (*cpu.quota_us < down) return CpuIs::kTighter;
  return *cpu.quota_us <= up ? CpuIs::kSame : CpuIs::kLooser;
}

void CompareCpu(uint64_t millis, const Cpu& inside, const Cpu& outside, Mismatches& found) {
  std::string wanted = Text(millis, " thousandths of a core");
  CpuIs within = Judge(millis, inside);
  if (within == CpuIs::kTighter || within == CpuIs::kLooser) {
    found.AddLimit("limits.cpu", wanted, Text(Show(inside), " inside"));
    return;
  }
  CpuIs around = Judge(millis, outside);
  bool tighter = around == CpuIs::kTighter && within == CpuIs::kSame;
  if (around != CpuIs::kSame && !tighter) {
    found.AddLimit("limits.cpu", wanted, Text(Show(outside), " outside"));
  }
}

// A share of something, which is the cell's own alone: it must be the planned one, inside where a
// file shows it and outside in any case.
void CompareShares(const Limits& planned, const LimitsSeen& seen, std::string_view where,
                   bool may_be_unseen, Mismatches& found) {
  if (planned.io_weight != 0 && seen.io_weight != planned.io_weight &&
      !(may_be_unseen && !seen.io_weight)) {
    found.AddLimit("limits.io_weight", std::to_string(planned.io_weight),
                   Text(Show(seen.io_weight), where));
  }
  if (!planned.cpu_set.empty() && seen.cpu_set != planned.cpu_set &&
      !(may_be_unseen && !seen.cpu_set)) {
    found.AddLimit("limits.cpu_set", planned.cpu_set,
                   Text(seen.cpu_set ? Printable(*seen.cpu_set) : "no limit file", where));
  }
}

}  // namespace

void CompareLimits(const Limits& planned, const LimitsSeen& inside, const LimitsSeen& outside,
                   Mismatches& found) {
  CompareOne("limits.memory", planned.memory_bytes, inside.memory_bytes, outside.memory_bytes,
             IsMemory, found);
  // Swap gets nothing on top of memory.
  CompareOne("limits.memory_and_swap", planned.memory_bytes, inside.memory_and_swap_bytes,
             outside.memory_and_swap_bytes, IsMemory, found);
  CompareOne("limits.pids", planned.pids, inside.pids, outside.pids, IsExactly, found);
  CompareShares(planned, inside, " inside", true, found);
  CompareShares(planned, outside, " outside", false, found);
  if (planned.oom_group && outside.oom_group != true) {
    found.AddLimit("limits.oom_group", "the whole cell is killed",
                   outside.oom_group ? "one process is" : "no limit file");
  }
  // The launcher hands every limit file it made to init, so none inside means that there is none.
  if (planned.cpu_may_be_missing && !inside.cpu_quota_us) return;
  CompareCpu(planned.cpu_millis, CpuOf(inside), CpuOf(outside), found);
}

}  // namespace taskcell::cell
