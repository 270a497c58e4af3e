#include "launcher/native/limit_check.h"

#include "launcher/base/text.h"
#include "launcher/native/report.h"

namespace taskcell::native {
namespace {

using Verdict = LimitCheck::Verdict;

constexpr char kCpuLimit[] = "cpu limit";
constexpr char kNothingCounted[] =
    "a program went for it in a cell and the kernel counted nothing. What happened: taskcell-probe "
    "live";

LimitCheck Counted(const char* name, uint64_t count, std::string found) {
  if (count > 0) return {name, Verdict::kHeld, std::move(found)};
  return {name, Verdict::kNot, kNothingCounted};
}

// The kernel holds back only what tries to take more, which a busy host gives to nobody. More than
// this the cell cannot have used while the limit held: its share of each period that was begun, and
// a margin for what the kernel hands out ahead.
uint64_t MostCpuUs(uint64_t cpu_millis, uint64_t wall_us) {
  constexpr uint64_t kPeriodUs = 100'000;
  constexpr uint64_t kMarginUs = 100'000;
  uint64_t periods = wall_us / kPeriodUs + 2;
  return periods * cpu_millis * (kPeriodUs / 1000) + kMarginUs;
}

LimitCheck CheckCpu(const cell::Limits& limits, const Outcome& outcome) {
  uint64_t periods = outcome.events.cpu_throttles.value_or(0);
  if (periods > 0) {
    return {kCpuLimit, Verdict::kHeld,
            Text("0.", limits.cpu_millis / 100, " cores: held back in ", periods, " periods")};
  }
  uint64_t used_us = CpuTime(outcome).value_or(0);
  if (used_us > MostCpuUs(limits.cpu_millis, outcome.wall_us)) {
    return {kCpuLimit, Verdict::kNot,
            Text("a cell used ", used_us / 1000, " ms of processor time in ",
                 outcome.wall_us / 1000, " ms. What happened: taskcell-probe live")};
  }
  return {
      kCpuLimit, Verdict::kUnknown,
      "could not tell: nothing was held back, and the host was too busy to give a cell more than "
      "its limit. Try again when it is not"};
}

}  // namespace

std::vector<LimitCheck> CheckLimits(const cell::Limits& limits, const Outcome& outcome) {
  const cgroup::Events& events = outcome.events;
  return {Counted("pids limit", events.pids_refusals,
                  Text(limits.pids, " processes: forks past it were refused ", events.pids_refusals,
                       " times")),
          Counted("memory limit", events.oom_kills,
                  Text(limits.memory_bytes >> 20U, " MiB with swap: ", events.oom_kills,
                       " process was killed at it")),
          CheckCpu(limits, outcome)};
}

}  // namespace taskcell::native
