#include "probe/live/verdict.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "launcher/base/text.h"
#include "probe/live/quantity.h"

namespace taskcell::live {
namespace {

constexpr uint64_t kLargestPageBytes = 65536;
constexpr uint64_t kMillisPerCore = 1000;
// Processes of the cell beside those that taskcell-breaker makes: taskcell-init and itself.
constexpr uint64_t kOwnProcesses = 2;

// Equal but for the kernel's rounding.
bool IsAbout(uint64_t one, uint64_t other) {
  if (one == other) return true;
  if (one == kUnlimited || other == kUnlimited) return false;
  auto [low, high] = std::minmax(one, other);
  return high - low <= (high >= kLargestPageBytes ? kLargestPageBytes - 1 : 0);
}

struct Attempted {
  Happened what = Happened::kUnclear;
  std::string text;     // what happened
  std::string missing;  // why it is unclear
};

const Finding* Find(const Trial& trial, Payload payload, std::string_view target = "") {
  for (const Finding& finding : trial.findings)
    if (finding.payload == payload && finding.target == target) return &finding;
  return nullptr;
}

const cell::Mismatch* FindMismatch(const Trial& trial, std::string_view field) {
  for (const cell::Mismatch& mismatch : trial.mismatches)
    if (mismatch.field == field) return &mismatch;
  return nullptr;
}

// How the job ended, for rows whose line is missing.
std::string EndText(const Trial& trial) {
  const gate::JobEnd& end = trial.end;
  std::string said = trial.errors.empty() ? "" : Text(": ", Printable(Trim(trial.errors)));
  switch (end.outcome) {
    case gate::JobOutcome::kRefused:
      return Text("the program did not start (", end.refusal.stage, ": ",
                  Printable(end.refusal.text), ")");
    case gate::JobOutcome::kGateClosed:
      return "the cell's first process was killed";
    case gate::JobOutcome::kOverdue:
      return "the cell did not end when it was told to";
    case gate::JobOutcome::kExited:
      break;
  }
  if (end.exit.reason != cell::ExitReason::kExited)
    return Text("the trial's own time ran out", said);
  if (end.exit.signal != 0) return Text("the program died of signal ", end.exit.signal, said);
  return Text("the program could not try it", said);
}

Attempted NotTried(const Trial& trial) { return {Happened::kUnclear, "not tried", EndText(trial)}; }

std::optional<uint64_t> Prefer(const std::optional<uint64_t>& outside,
                               const std::optional<uint64_t>& inside) {
  return outside ? outside : inside;
}

std::optional<uint64_t> CpuMillis(const cell::LimitsSeen& limits) {
  if (!limits.cpu_quota_us || !limits.cpu_period_us || *limits.cpu_period_us == 0)
    return std::nullopt;
  if (*limits.cpu_quota_us == kUnlimited) return kUnlimited;
  return (*limits.cpu_quota_us * kMillisPerCore + *limits.cpu_period_us / 2) /
         *limits.cpu_period_us;
}

std::optional<uint64_t> OnTop(const std::optional<uint64_t>& both,
                              const std::optional<uint64_t>& memory) {
  if (!both || !memory) return std::nullopt;
  if (*both == kUnlimited || *memory == kUnlimited) return kUnlimited;
  return *both > *memory ? *both - *memory : 0;
}

Row MakeRow(std::string limit, Unit unit, LimitEvidence evidence, std::string tried,
            Attempted attempted, const cell::Mismatch* mismatch = nullptr) {
  Row row;
  row.limit = std::move(limit);
  row.unit = unit;
  evidence.seen_differs = mismatch != nullptr && evidence.seen.has_value();
  evidence.happened = attempted.what;
  row.evidence = evidence;
  row.tried = std::move(tried);
  row.happened = std::move(attempted.text);
  row.verdict = Judge(evidence);
  row.lie = IsLie(evidence);
  if (evidence.happened == Happened::kPast) {
    row.why = "nothing stopped it at the limit";
  } else if (evidence.seen_differs) {
    row.why = Text("in force is another limit: ", Printable(mismatch->found));
  } else {
    row.why = std::move(attempted.missing);
  }
  return row;
}

Attempted TryPids(uint64_t asked, const Trial& trial) {
  const Finding* finding = Find(trial, Payload::kPids);
  if (finding == nullptr) return NotTried(trial);
  uint64_t tasks = finding->reached + kOwnProcesses;
  if (finding->err == 0 || tasks > asked)
    return {Happened::kPast, Text(tasks, " tasks lived at once"), ""};
  std::string text = Text("fork failed at ", tasks, " tasks (", ErrnoName(finding->err), ")");
  if (finding->err != EAGAIN) return {Happened::kUnclear, text, "that is not how a limit refuses"};
  if (!trial.events) return {Happened::kUnclear, text, "the kernel's count is out of sight"};
  text += Text("; the kernel counted ", trial.events->pids_refusals);
  if (trial.events->pids_refusals == 0)
    return {Happened::kUnclear, text, "something else than this limit refused (RLIMIT_NPROC?)"};
  if (tasks < asked)
    return {Happened::kUnclear, text, "a tighter limit around the cell came first"};
  return {Happened::kStopped, text, ""};
}

Attempted TryFiles(uint64_t asked, const Trial& trial) {
  const Finding* finding = Find(trial, Payload::kFiles);
  if (finding == nullptr) return NotTried(trial);
  if (finding->err == 0 || finding->reached > asked)
    return {Happened::kPast, Text("descriptor ", finding->reached - 1, " was opened"), ""};
  std::string text =
      Text("refused after descriptor ", finding->reached == 0 ? 0 : finding->reached - 1, " (",
           ErrnoName(finding->err), ")");
  if (finding->err == EMFILE && finding->reached == asked) return {Happened::kStopped, text, ""};
  return {Happened::kUnclear, text, "something else refused"};
}

Attempted TryTmpfs(const cell::PlannedTmpfs& tmpfs, const Trial& trial) {
  const Finding* finding = Find(trial, Payload::kTmpfs, tmpfs.target);
  if (finding == nullptr) return NotTried(trial);
  if (finding->err == 0 || finding->reached > tmpfs.size_bytes)
    return {Happened::kPast, Text(ShowBytes(finding->reached), " were written"), ""};
  std::string text =
      Text("full after ", ShowBytes(finding->reached), " (", ErrnoName(finding->err), ")");
  if (finding->err != ENOSPC) return {Happened::kUnclear, text, "something else refused"};
  if (!IsAbout(finding->reached, tmpfs.size_bytes))
    return {Happened::kUnclear, text, "it is smaller than asked"};
  return {Happened::kStopped, text, ""};
}

Attempted TryMemory(uint64_t asked, const Trial& trial) {
  const Finding* finding = Find(trial, Payload::kMemory);
  uint64_t kills = trial.events ? trial.events->oom_kills : 0;
  if (finding == nullptr) {
    bool killed = trial.end.outcome == gate::JobOutcome::kExited &&
                  trial.end.exit.signal == SIGKILL && kills > 0;
    if (!killed) return NotTried(trial);
    return {Happened::kStopped, Text("the whole program was killed; out-of-memory kills: ", kills),
            ""};
  }
  std::string reached = ShowBytes(finding->reached);
  if (finding->reached > asked) return {Happened::kPast, Text(reached, " were in use at once"), ""};
  if (finding->signal != SIGKILL)
    return {Happened::kUnclear, Text("ended by itself after ", reached),
            "something else stopped it"};
  std::string text = Text("killed after ", reached);
  if (!trial.events) return {Happened::kUnclear, text, "the kernel's count is out of sight"};
  text += Text("; out-of-memory kills: ", kills);
  if (kills == 0)
    return {Happened::kUnclear, text, "the kernel counted no kill for want of memory"};
  return {Happened::kStopped, text, ""};
}

Attempted TryCpu(uint64_t asked, const HostFacts& host, const Trial& trial) {
  const Finding* finding = Find(trial, Payload::kCpu);
  if (finding == nullptr || finding->wall_us == 0) return NotTried(trial);
  uint64_t share = finding->reached * kMillisPerCore / finding->wall_us;
  std::string text =
      Text("used ", ShowCpuMillis(share), " cores for ", finding->wall_us / kMillisPerCore, " ms");
  if (finding->reached > MostCpuUs(asked, finding->wall_us, host.processors))
    return {Happened::kPast, text, ""};
  if (asked >= host.processors * kMillisPerCore) {
    return {Happened::kUnclear, text,
            Text("this host has ", host.processors, " processors, no more than the limit")};
  }
  if (!trial.events || !trial.events->cpu_throttles)
    return {Happened::kUnclear, text, "the kernel's count is out of sight"};
  text += Text("; held back in ", *trial.events->cpu_throttles, " periods");
  if (*trial.events->cpu_throttles == 0)
    return {Happened::kUnclear, text, "the host was too busy to give it more: try again"};
  return {Happened::kStopped, text, ""};
}

Row MemoryRow(const Asked& asked, const Trial& trial) {
  LimitEvidence evidence{asked.limits.memory_bytes};
  if (trial.reported) evidence.reported = trial.reported->memory_bytes;
  evidence.seen =
      Prefer(trial.seen.outside.limits.memory_bytes, trial.seen.inside.limits.memory_bytes);
  uint64_t bound = evidence.asked + MemoryPast(evidence.asked);
  return MakeRow("memory", Unit::kBytes, evidence, Text("fill up to ", ShowBytes(bound)),
                 TryMemory(evidence.asked, trial), FindMismatch(trial, "limits.memory"));
}

Row SwapRow(const Asked& asked, const HostFacts& host, const Trial& trial) {
  LimitEvidence evidence{0};
  if (trial.reported)
    evidence.reported = OnTop(trial.reported->memory_and_swap_bytes, trial.reported->memory_bytes);
  const cell::LimitsSeen& outside = trial.seen.outside.limits;
  const cell::LimitsSeen& inside = trial.seen.inside.limits;
  evidence.seen = Prefer(OnTop(outside.memory_and_swap_bytes, outside.memory_bytes),
                         OnTop(inside.memory_and_swap_bytes, inside.memory_bytes));
  Attempted attempted = TryMemory(asked.limits.memory_bytes, trial);
  switch (attempted.what) {
    case Happened::kStopped:
      attempted.text =
          host.has_swap ? "killed although the host has swap" : "killed; this host has no swap";
      break;
    case Happened::kPast:
      // Only a memory limit that is there makes the rest swap.
      if (FindMismatch(trial, "limits.memory") == nullptr) {
        attempted.text = "more than the limit was kept";
      } else {
        attempted = {Happened::kUnclear, "not reached", "the memory limit itself is another one"};
      }
      break;
    case Happened::kUnclear:
      break;
  }
  // A difference of the memory limit alone shows in the sum of both too.
  bool differs = evidence.seen.has_value() && *evidence.seen != 0;
  return MakeRow("swap", Unit::kBytes, evidence, "the same, swap as a way out",
                 std::move(attempted),
                 differs ? FindMismatch(trial, "limits.memory_and_swap") : nullptr);
}

Row PidsRow(const Asked& asked, const Trial& trial) {
  LimitEvidence evidence{asked.limits.pids};
  if (trial.reported) evidence.reported = trial.reported->pids;
  evidence.seen = Prefer(trial.seen.outside.limits.pids, trial.seen.inside.limits.pids);
  return MakeRow("pids", Unit::kTasks, evidence,
                 Text("fork up to ", evidence.asked + kPidsPast, " times"),
                 TryPids(evidence.asked, trial), FindMismatch(trial, "limits.pids"));
}

Row CpuRow(const Asked& asked, const HostFacts& host, const Trial& trial) {
  LimitEvidence evidence{asked.limits.cpu_millis};
  if (trial.reported) evidence.reported = trial.reported->cpu_millis;
  evidence.seen = Prefer(CpuMillis(trial.seen.outside.limits), CpuMillis(trial.seen.inside.limits));
  return MakeRow("cpu", Unit::kCpuMillis, evidence,
                 Text("compute in ", CpuProcesses(evidence.asked), " processes"),
                 TryCpu(evidence.asked, host, trial), FindMismatch(trial, "limits.cpu"));
}

Row FilesRow(const Asked& asked, const Trial& trial) {
  LimitEvidence evidence{asked.limits.nofile};
  if (trial.reported) evidence.reported = trial.reported->nofile;
  evidence.seen = trial.seen.inside.witness_nofile;
  return MakeRow("files", Unit::kDescriptors, evidence, Text("open ", evidence.asked + kFilesPast),
                 TryFiles(evidence.asked, trial), FindMismatch(trial, "limits.nofile"));
}

Row TmpfsRow(const cell::PlannedTmpfs& tmpfs, const Trial& trial) {
  LimitEvidence evidence{tmpfs.size_bytes};
  if (trial.reported) {
    auto at = trial.reported->tmpfs_bytes.find(tmpfs.target);
    if (at != trial.reported->tmpfs_bytes.end()) evidence.reported = at->second;
  }
  for (const cell::TmpfsSeen& seen : trial.seen.inside.tmpfs)
    if (seen.target == tmpfs.target && seen.size_bytes > 0) evidence.seen = seen.size_bytes;
  std::string name = Text("tmpfs:", tmpfs.target);
  return MakeRow(name, Unit::kBytes, evidence,
                 Text("write up to ", ShowBytes(tmpfs.size_bytes + kTmpfsPast)),
                 TryTmpfs(tmpfs, trial), FindMismatch(trial, name));
}

bool EndedByForce(const gate::JobEnd& end) {
  return end.outcome == gate::JobOutcome::kExited && end.exit.reason != cell::ExitReason::kExited;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHeld:
      return "held";
    case Verdict::kNotHeld:
      return "not_held";
    case Verdict::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view Name(Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return "bytes";
    case Unit::kTasks:
      return "tasks";
    case Unit::kCpuMillis:
      return "cpu_millis";
    case Unit::kDescriptors:
      return "descriptors";
    case Unit::kMilliseconds:
      break;
  }
  return "milliseconds";
}

Verdict Judge(const LimitEvidence& evidence) {
  if (evidence.happened == Happened::kPast) return Verdict::kNotHeld;
  if (evidence.seen && evidence.seen_differs) return Verdict::kNotHeld;
  return evidence.happened == Happened::kStopped ? Verdict::kHeld : Verdict::kUnknown;
}

bool IsLie(const LimitEvidence& evidence) {
  if (!evidence.reported) return false;
  if (evidence.seen && !IsAbout(*evidence.reported, *evidence.seen)) return true;
  return evidence.happened == Happened::kPast && *evidence.reported <= evidence.asked;
}

uint64_t MostCpuUs(uint64_t cpu_millis, uint64_t wall_us, uint64_t processors) {
  constexpr uint64_t kPeriodUs = 100'000;
  constexpr uint64_t kSliceUs = 5'000;  // sched_cfs_bandwidth_slice_us as the kernel sets it
  uint64_t quota_us = cpu_millis * kPeriodUs / kMillisPerCore;
  uint64_t periods = (wall_us + kPeriodUs - 1) / kPeriodUs + 1;
  return periods * quota_us + processors * kSliceUs;
}

std::vector<Row> JudgeLimits(const Asked& asked, const HostFacts& host, const Trial& trial) {
  std::vector<Row> rows;
  rows.push_back(MemoryRow(asked, trial));
  rows.push_back(SwapRow(asked, host, trial));
  rows.push_back(PidsRow(asked, trial));
  rows.push_back(CpuRow(asked, host, trial));
  rows.push_back(FilesRow(asked, trial));
  for (const cell::PlannedTmpfs& tmpfs : PlanProbe(asked, 1, 1).tmpfs)
    rows.push_back(TmpfsRow(tmpfs, trial));
  return rows;
}

Row JudgeOutput(const Asked& asked, const Trial& trial) {
  Attempted attempted = NotTried(trial);
  const gate::JobEnd& end = trial.end;
  std::string came = Text(ShowBytes(trial.output_bytes), " came");
  if (EndedByForce(end) && end.cancelled) {
    attempted = {Happened::kStopped, Text(came, ", then the program was ended"), ""};
  } else if (end.outcome == gate::JobOutcome::kOverdue || Find(trial, Payload::kFlood) != nullptr ||
             trial.output_bytes > asked.output_bytes) {
    attempted = {Happened::kPast, Text(came, ", and the program went on"), ""};
  }
  return MakeRow("output", Unit::kBytes, {asked.output_bytes},
                 Text("print up to ", ShowBytes(asked.output_bytes + kFloodPast)),
                 std::move(attempted));
}

Row JudgeDeadline(const Asked& asked, const Trial& trial) {
  // What ending it, and a busy host, may take.
  constexpr uint64_t kGraceUs = 1'000'000;
  Attempted attempted = NotTried(trial);
  const gate::JobEnd& end = trial.end;
  uint64_t wall_ms = end.exit.wall_us / kMillisPerCore;
  if (EndedByForce(end)) {
    bool in_time = end.exit.wall_us <= asked.deadline_ms * kMillisPerCore + kGraceUs;
    attempted = {in_time ? Happened::kStopped : Happened::kPast,
                 Text("all of it was ended after ", wall_ms, " ms"), ""};
  } else if (end.outcome == gate::JobOutcome::kOverdue ||
             Find(trial, Payload::kLinger) != nullptr) {
    attempted = {Happened::kPast, "the program outlived it", ""};
  }
  return MakeRow("deadline", Unit::kMilliseconds, {asked.deadline_ms},
                 "stay, deaf to signals, in two sessions", std::move(attempted));
}

}  // namespace taskcell::live
