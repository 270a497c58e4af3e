#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/cell/attestation.h"
#include "probe/live/asked.h"
#include "probe/live/trial.h"

namespace taskcell::live {

enum class Verdict : uint8_t { kHeld, kNotHeld, kUnknown };
std::string_view Name(Verdict verdict);  // "held", "not_held", "unknown"

enum class Unit : uint8_t { kBytes, kTasks, kCpuMillis, kDescriptors, kMilliseconds };
std::string_view Name(Unit unit);  // "bytes", "tasks", "cpu_millis", "descriptors", "milliseconds"

// What trying to go past a limit came to.
enum class Happened : uint8_t {
  kStopped,  // at the limit, by the limit
  kPast,     // nothing stopped it there
  kUnclear,  // it was not reached, or something else stopped it
};

inline constexpr uint64_t kUnlimited = cell::LimitsSeen::kUnlimited;

// What is known about one limit.
struct LimitEvidence {
  uint64_t asked = 0;
  std::optional<uint64_t> reported = {};  // by the engine
  std::optional<uint64_t> seen = {};      // attested; nullopt: not visible
  bool seen_differs = false;              // from asked, by more than the kernel's own rounding
  Happened happened = Happened::kUnclear;
};

// A limit holds when going past it was stopped and what is attested is not another one. What is
// attested alone proves nothing; another limit attested, or a limit that was passed, is not held.
// The engine's word decides nothing. Pure.
Verdict Judge(const LimitEvidence& evidence);

// True when the engine's word is not what is in force: what is attested differs from it by more
// than the kernel's rounding, or what it says is limited was not. Pure.
bool IsLie(const LimitEvidence& evidence);

// One row of the table: declared against enforced.
struct Row {
  std::string
      limit;  // "memory", "swap", "pids", "cpu", "files", "tmpfs:/tmp", "output", "deadline"
  Unit unit = Unit::kBytes;
  LimitEvidence evidence;
  std::string tried;
  std::string happened;
  std::string why;  // what is wrong or missing; empty where it holds
  Verdict verdict = Verdict::kUnknown;
  bool lie = false;
};

// What is true of the host and matters for a verdict.
struct HostFacts {
  bool has_swap = false;
  uint64_t processors = 1;
};

// The rows of the trial of all limits of the cell itself. Pure.
std::vector<Row> JudgeLimits(const Asked& asked, const HostFacts& host, const Trial& trial);
// The row of a flood of output, and of a job that stays. Pure.
Row JudgeOutput(const Asked& asked, const Trial& trial);
Row JudgeDeadline(const Asked& asked, const Trial& trial);

// The most processor time that `cpu_millis` can come to in `wall_us`: a whole quota may be left of
// the period before and one fall due in the last, and each processor hands out slices. Pure.
uint64_t MostCpuUs(uint64_t cpu_millis, uint64_t wall_us, uint64_t processors);

}  // namespace taskcell::live
