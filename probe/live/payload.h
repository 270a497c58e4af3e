#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::live {

// What taskcell-breaker does in a cell to reach a limit and to go on past it. Each is bounded in
// count and time also where nothing holds it.
enum class Payload : uint8_t {
  kPids,    // makes processes that wait, until it can make none
  kFiles,   // opens descriptors
  kTmpfs,   // writes one file, which is gone afterwards
  kCpu,     // computes in more processes than the limit has cores for, for kCpuWindowMs
  kMemory,  // a process of its own writes into fresh memory, page by page
  kFlood,   // writes to standard output
  kLinger,  // stays, with a process that left its session, and takes no notice of signals
};
inline constexpr Payload kPayloads[] = {Payload::kPids,  Payload::kFiles,  Payload::kTmpfs,
                                        Payload::kCpu,   Payload::kMemory, Payload::kFlood,
                                        Payload::kLinger};
std::string_view Name(Payload payload);  // "pids", "files", "tmpfs", ...

// The hostname of a probe's cell: taskcell-breaker does nothing where it is another.
inline constexpr char kProbeHostname[] = "taskcell-probe";

inline constexpr uint64_t kCpuWindowMs = 500;
// How far past a limit a payload goes before it gives up.
inline constexpr uint64_t kPidsPast = 16;
inline constexpr uint64_t kFilesPast = 16;
inline constexpr uint64_t kTmpfsPast = uint64_t{1} << 20U;
inline constexpr uint64_t kFloodPast = uint64_t{64} << 20U;
inline constexpr uint64_t kLingerPastMs = 2000;
// For memory: a quarter more, and what a host that swaps needs to show it.
constexpr uint64_t MemoryPast(uint64_t limit) { return limit / 4 + (uint64_t{16} << 20U); }
// How many processes compute where `cpu_millis` thousandths of a core are the limit.
constexpr uint64_t CpuProcesses(uint64_t cpu_millis) { return cpu_millis / 1000 + 2; }

// One payload and the limit it is to reach: tasks, descriptors, bytes, thousandths of a core or
// milliseconds. `target` is the directory to write into (kTmpfs).
struct Attempt {
  Payload payload = Payload::kPids;
  uint64_t limit = 0;
  std::string target = {};
};

// One argument of taskcell-breaker: "pids:64", "tmpfs:8388608:/tmp". Pure.
std::string Word(const Attempt& attempt);
// kUsage for anything else, for a limit of 0 or past kMaxAttemptLimit. Pure.
Result<Attempt> ParseAttempt(std::string_view word);
inline constexpr uint64_t kMaxAttemptLimit = uint64_t{1} << 40U;

// What came of one.
struct Finding {
  Payload payload = Payload::kPids;
  std::string target = {};
  // How far it got. kPids: processes made; kFiles: the highest descriptor and one; kTmpfs, kMemory,
  // kFlood: bytes written; kCpu: microseconds of processor time; kLinger: milliseconds stayed.
  uint64_t reached = 0;
  int32_t err = 0;       // errno of what was refused; 0: nothing was, it stopped by itself
  int32_t signal = 0;    // kMemory: what ended the process
  uint64_t wall_us = 0;  // how long it took
};

// One line of JSON without its newline, and back. kViolation for anything else. Pure.
std::string Line(const Finding& finding);
Result<Finding> ParseFinding(std::string_view line);

}  // namespace taskcell::live
