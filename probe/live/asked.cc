#include "probe/live/asked.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "probe/live/payload.h"

namespace taskcell::live {
namespace {

// What a waiting process costs in kernel and page table memory, generously.
constexpr uint64_t kBytesPerProcess = uint64_t{128} << 10U;
constexpr uint64_t kPageBytes = 65536;  // the largest there is

Error Refuse(std::string text) { return Error(Kind::kUsage, std::move(text)); }

}  // namespace

Status CheckAsked(const Asked& asked) {
  const cell::Limits& limits = asked.limits;
  if (limits.memory_bytes < kLeastProbeMemory || limits.memory_bytes > kMostProbeMemory) {
    return Refuse(Text("--memory: a probe takes ", kLeastProbeMemory >> 20U, "M to ",
                       kMostProbeMemory >> 20U, "M: it fills all of it"));
  }
  if (limits.pids < kLeastProbePids || limits.pids > kMostProbePids) {
    return Refuse(Text("--pids: a probe takes ", kLeastProbePids, " to ", kMostProbePids,
                       ": it starts that many processes"));
  }
  if (limits.cpu_millis < kLeastProbeCpuMillis || limits.cpu_millis > kMostProbeCpuMillis)
    return Refuse("--cpus: a probe takes 0.05 to 16");
  if (limits.pids < CpuProcesses(limits.cpu_millis) + 2) {
    return Refuse(Text("--pids: ", limits.pids, " is too few to use more than --cpus allows: ",
                       CpuProcesses(limits.cpu_millis) + 2, " at the least"));
  }
  uint64_t needed = kLeastProbeMemory / 2 + limits.pids * kBytesPerProcess;
  if (limits.memory_bytes < needed) {
    return Refuse(Text("--memory: ", limits.pids, " processes need ", (needed >> 20U) + 1,
                       "M at the least, or the memory runs out before --pids does"));
  }
  return Ok();
}

uint64_t TmpfsBytes(const Asked& asked) {
  constexpr uint64_t kMost = uint64_t{8} << 20U;
  return std::min(kMost, asked.limits.memory_bytes / 8) / kPageBytes * kPageBytes;
}

uint64_t LimitsDeadlineMs(const Asked& asked) {
  constexpr uint64_t kStartMs = 10'000;
  constexpr uint64_t kMsPerMebibyte = 100;
  constexpr uint64_t kMsPerProcess = 50;
  const cell::Limits& limits = asked.limits;
  uint64_t written = limits.memory_bytes + MemoryPast(limits.memory_bytes);
  for (const cell::PlannedTmpfs& tmpfs : PlanProbe(asked, 1, 1).tmpfs)
    written += tmpfs.size_bytes + kTmpfsPast;
  return kStartMs + kCpuWindowMs + (written >> 20U) * kMsPerMebibyte +
         (limits.pids + kPidsPast) * kMsPerProcess;
}

cell::CellPlan PlanProbe(const Asked& asked, uint32_t uid, uint32_t gid) {
  cell::CellPlan plan;
  plan.agent = "taskcell-probe";
  plan.hostname = kProbeHostname;
  plan.uid = uid;
  plan.gid = gid;
  plan.limits = asked.limits;
  plan.network = cell::NetworkMode::kNone;
  plan.working_directory = "/";
  cell::PlannedTmpfs tmpfs;
  tmpfs.size_bytes = TmpfsBytes(asked);
  tmpfs.target = "/tmp";
  tmpfs.mode = 01777;
  plan.tmpfs.push_back(tmpfs);
  tmpfs.target = "/workspace";
  tmpfs.mode = 0700;
  plan.tmpfs.push_back(tmpfs);
  return plan;
}

}  // namespace taskcell::live
