#include "launcher/cgroup/limits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "launcher/base/text.h"
#include "launcher/cgroup/cpuset.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/io_weight.h"
#include "launcher/sys/file.h"

namespace taskcell::cgroup {
namespace {

constexpr uint64_t kPeriodUs = 100'000;
constexpr uint64_t kMinQuotaUs = 1'000;  // kernel/sched/core.c: min_cfs_quota_period
// v1 shows "no limit" as the largest page count in bytes, which depends on the page size.
constexpr uint64_t kV1Unlimited = uint64_t{0x7FFF'FFFF'FFFF'0000};

Error NotALimit(std::string_view file, std::string_view text) {
  return Error(Kind::kViolation, Text(file, " holds '", Printable(text), "', which is no limit"));
}

// Where a level's files are: a directory and a prefix of the path.
struct Level {
  int directory_fd;
  std::string prefix;  // "" or "a/b/"

  Result<std::optional<std::string>> Read(std::string_view file) const {
    return ReadRecord(directory_fd, Text(prefix, file));
  }
};

Result<std::optional<uint64_t>> ReadLimit(const Level& level, std::string_view file) {
  std::optional<std::string> text = TRY(level.Read(file));
  if (!text) return std::optional<uint64_t>();
  std::optional<uint64_t> value = ParseLimit(*text);
  if (!value) return NotALimit(file, *text);
  return value;
}

Result<std::optional<CpuBandwidth>> ReadCpu(const Level& level, bool unified) {
  if (!unified) {
    std::optional<uint64_t> quota = TRY(ReadLimit(level, "cpu.cfs_quota_us"));
    std::optional<uint64_t> period = TRY(ReadLimit(level, "cpu.cfs_period_us"));
    if (!quota || !period) return std::optional<CpuBandwidth>();
    return std::optional<CpuBandwidth>({*quota, *period});
  }
  std::optional<std::string> text = TRY(level.Read("cpu.max"));
  if (!text) return std::optional<CpuBandwidth>();
  std::vector<std::string_view> words = Words(*text);
  if (words.size() != 2) return NotALimit("cpu.max", *text);
  std::optional<uint64_t> quota = ParseLimit(words[0]);
  std::optional<uint64_t> period = ParseUnsigned(words[1]);
  if (!quota || !period) return NotALimit("cpu.max", *text);
  return std::optional<CpuBandwidth>({*quota, *period});
}

template <typename Value, typename Less>
void LowerOne(std::optional<Value>& into, const std::optional<Value>& level, Less less) {
  if (level && (!into || less(*level, *into))) into = level;
}

bool SmallerShare(const CpuBandwidth& a, const CpuBandwidth& b) {
  if (a.quota_us == kUnlimited || a.period_us == 0) return false;
  if (b.quota_us == kUnlimited || b.period_us == 0) return true;
  __extension__ using Wide = unsigned __int128;
  return Wide{a.quota_us} * b.period_us < Wide{b.quota_us} * a.period_us;
}

uint64_t AddSaturating(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kUnlimited : sum;
}

uint64_t WholePages(uint64_t bytes) {
  uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes - bytes % page;
}

Result<UniqueFd> OpenToWrite(int cgroup_fd, const std::string& file) {
  return sys::OpenAt2(cgroup_fd, file, O_RDWR | O_NOCTTY, sys::kResolveBeneath);
}

// Writes one limit and reads it back.
Status WriteTo(const UniqueFd& fd, const std::string& file, uint64_t value, uint64_t expected) {
  std::string text = Text(value);
  TRY(sys::WriteAll(fd.get(), text).With(Text(file, " <- ", text)));
  std::array<char, kMaxRecordBytes> buffer;
  std::size_t got = TRY(sys::ReadAt(fd.get(), buffer, 0).With(file));
  std::string_view read = Trim({buffer.data(), got});
  if (ParseLimit(read) == expected) return Ok();
  return Error(Kind::kUnsupported,
               Text(file, " was set to ", value, " but reads '", Printable(read), "'"));
}

Status Write(int cgroup_fd, const std::string& file, uint64_t value, uint64_t expected) {
  const UniqueFd fd = TRY(OpenToWrite(cgroup_fd, file));
  return WriteTo(fd, file, value, expected);
}

// The same; false where the kernel has no such limit.
Result<bool> WriteWhereItIs(int cgroup_fd, const std::string& file, uint64_t value,
                            uint64_t expected) {
  Result<UniqueFd> opened = OpenToWrite(cgroup_fd, file);
  if (!opened.ok() && opened.error().err == ENOENT) return false;
  const UniqueFd fd = TRY(std::move(opened));
  TRY(WriteTo(fd, file, value, expected));
  return true;
}

Error SwapIsNotAccounted(std::string_view file) {
  return Error(Kind::kUnsupported,
               Text("this host has swap (/proc/swaps) but the kernel does not account it: there is "
                    "no ",
                    file,
                    ", so a cell could use more than its memory. An administrator must boot with "
                    "swapaccount=1, or switch swap off (swapoff -a)"));
}

Status ApplyMemoryV1(int cgroup_fd, const cell::Limits& limits, bool host_has_swap) {
  if (limits.oom_group)
    return Error(Kind::kUnsupported,
                 "killing the whole cell when memory runs out needs the unified hierarchy: v1 has "
                 "no memory.oom.group");
  const uint64_t bytes = limits.memory_bytes;
  // Before Linux 5.11 a limit covers the children only with this switched on.
  std::optional<std::string> nested = TRY(ReadRecord(cgroup_fd, "memory.use_hierarchy"));
  if (nested == "0") TRY(sys::WriteControl(cgroup_fd, "memory.use_hierarchy", "1"));
  // A parent with the killer off hands that on, and a cell over its limit would sleep for ever.
  std::optional<std::string> killer = TRY(ReadRecord(cgroup_fd, "memory.oom_control"));
  if (killer && ValueOf(*killer, "oom_kill_disable") == 1U)
    TRY(sys::WriteControl(cgroup_fd, "memory.oom_control", "0"));
  // The kernel wants memory <= memory and swap at every moment, so memory goes first.
  TRY(Write(cgroup_fd, "memory.limit_in_bytes", bytes, WholePages(bytes)));
  constexpr const char* kWithSwap = "memory.memsw.limit_in_bytes";
  const bool is_accounted = TRY(WriteWhereItIs(cgroup_fd, kWithSwap, bytes, WholePages(bytes)));
  if (!is_accounted && host_has_swap) return SwapIsNotAccounted(kWithSwap);
  return Ok();
}

Status ApplyMemoryV2(int cgroup_fd, const cell::Limits& limits, bool host_has_swap) {
  TRY(Write(cgroup_fd, "memory.max", limits.memory_bytes, WholePages(limits.memory_bytes)));
  // It is 0 in a new cgroup: one process is killed, not all.
  if (limits.oom_group) TRY(Write(cgroup_fd, "memory.oom.group", 1, 1));
  const bool is_accounted = TRY(WriteWhereItIs(cgroup_fd, "memory.swap.max", 0, 0));
  if (!is_accounted && host_has_swap) return SwapIsNotAccounted("memory.swap.max");
  return Ok();
}

Status ApplyCpu(int cgroup_fd, bool unified, uint64_t cpu_millis) {
  CpuBandwidth wanted = PlanCpu(cpu_millis);
  if (unified) {
    TRY(sys::WriteControl(cgroup_fd, "cpu.max", Text(wanted.quota_us, ' ', wanted.period_us)));
  } else {
    if (wanted.period_us != kPeriodUs)  // a new cgroup has that one
      TRY(sys::WriteControl(cgroup_fd, "cpu.cfs_period_us", Text(wanted.period_us)));
    Status set = sys::WriteControl(cgroup_fd, "cpu.cfs_quota_us", Text(wanted.quota_us));
    if (!set.ok() && set.error().err == EINVAL)
      return std::move(set).With("a cgroup above has a smaller cpu quota, or it is out of range");
    TRY(std::move(set));
  }
  std::optional<CpuBandwidth> found = TRY(ReadCpu({cgroup_fd, ""}, unified));
  if (found == wanted) return Ok();
  return Error(
      Kind::kUnsupported,
      Text("the cpu limit was set to ", wanted.quota_us, " in ", wanted.period_us, " us but reads ",
           found ? Text(found->quota_us, " in ", found->period_us) : std::string("nothing")));
}

}  // namespace

CpuBandwidth PlanCpu(uint64_t cpu_millis) {
  cpu_millis = std::clamp<uint64_t>(cpu_millis, 1, UINT64_MAX / kPeriodUs);
  uint64_t quota_us = cpu_millis * (kPeriodUs / 1000);
  if (quota_us >= kMinQuotaUs) return {quota_us, kPeriodUs};
  return {kMinQuotaUs, (kMinQuotaUs * 1000 + cpu_millis - 1) / cpu_millis};
}

std::optional<uint64_t> ParseLimit(std::string_view text) {
  if (text == "max" || text == "-1") return kUnlimited;
  std::optional<uint64_t> value = ParseUnsigned(text);
  if (value && *value >= kV1Unlimited) return kUnlimited;
  return value;
}

Result<LevelLimits> ReadLevel(int directory_fd, const std::string& below, bool unified,
                              Controller controller) {
  Level level{directory_fd, below.empty() ? "" : below + "/"};
  LevelLimits limits;
  switch (controller) {
    case Controller::kMemory:
      limits.memory = TRY(ReadLimit(level, unified ? "memory.max" : "memory.limit_in_bytes"));
      if (unified) {
        limits.swap = TRY(ReadLimit(level, "memory.swap.max"));
        std::optional<uint64_t> group = TRY(ReadLimit(level, "memory.oom.group"));
        if (group) limits.oom_group = *group == 1;
      } else {
        limits.memory_and_swap = TRY(ReadLimit(level, "memory.memsw.limit_in_bytes"));
      }
      break;
    case Controller::kPids:
      limits.pids = TRY(ReadLimit(level, "pids.max"));
      break;
    case Controller::kCpu:
      limits.cpu = TRY(ReadCpu(level, unified));
      break;
    case Controller::kCpuset:
      limits.cpu_set = TRY(ReadCpusInForce(directory_fd, level.prefix, unified));
      break;
    case Controller::kIo:
      limits.io_weight = TRY(ReadIoWeight(directory_fd, level.prefix, unified));
      break;
  }
  return limits;
}

void Lower(LevelLimits& into, const LevelLimits& level) {
  auto smaller = [](uint64_t a, uint64_t b) { return a < b; };
  LowerOne(into.memory, level.memory, smaller);
  LowerOne(into.memory_and_swap, level.memory_and_swap, smaller);
  LowerOne(into.swap, level.swap, smaller);
  LowerOne(into.pids, level.pids, smaller);
  LowerOne(into.cpu, level.cpu, SmallerShare);
  if (!into.io_weight) into.io_weight = level.io_weight;
  if (!into.cpu_set) into.cpu_set = level.cpu_set;
  if (!into.oom_group) into.oom_group = level.oom_group;
}

cell::LimitsSeen ToSeen(const LevelLimits& effective, bool host_has_swap) {
  cell::LimitsSeen seen;
  seen.memory_bytes = effective.memory;
  if (effective.memory_and_swap)
    seen.memory_and_swap_bytes = effective.memory_and_swap;
  else if (effective.memory && effective.swap)
    seen.memory_and_swap_bytes = AddSaturating(*effective.memory, *effective.swap);
  else if (effective.memory && !host_has_swap)
    seen.memory_and_swap_bytes = effective.memory;
  seen.pids = effective.pids;
  if (effective.cpu) {
    seen.cpu_quota_us = effective.cpu->quota_us;
    seen.cpu_period_us = effective.cpu->period_us;
  }
  seen.io_weight = effective.io_weight;
  seen.cpu_set = effective.cpu_set;
  seen.oom_group = effective.oom_group;
  return seen;
}

bool ListsSwap(std::string_view text) {
  std::size_t header_end = text.find('\n');
  return header_end != text.npos && !Trim(text.substr(header_end)).empty();
}

Status ApplyLimits(int cgroup_fd, bool unified, std::span<const Controller> controllers,
                   const cell::Limits& limits, bool host_has_swap) {
  for (Controller controller : controllers) {
    switch (controller) {
      case Controller::kMemory:
        TRY(unified ? ApplyMemoryV2(cgroup_fd, limits, host_has_swap)
                    : ApplyMemoryV1(cgroup_fd, limits, host_has_swap));
        break;
      case Controller::kPids:
        TRY(Write(cgroup_fd, "pids.max", limits.pids, limits.pids));
        break;
      case Controller::kCpu:
        TRY(ApplyCpu(cgroup_fd, unified, limits.cpu_millis));
        break;
      case Controller::kCpuset:
        TRY(ApplyCpuset(cgroup_fd, unified, limits.cpu_set));
        break;
      case Controller::kIo:
        TRY(ApplyIoWeight(cgroup_fd, unified, limits.io_weight));
        break;
    }
  }
  return Ok();
}

Status ApplySocketMemoryV1(int cgroup_fd, uint64_t bytes) {
  (void)TRY(WriteWhereItIs(cgroup_fd, "memory.kmem.tcp.limit_in_bytes", bytes, WholePages(bytes)));
  return Ok();
}

}  // namespace taskcell::cgroup
