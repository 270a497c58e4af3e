#include "probe/live/live.h"

#include <algorithm>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/cgroup/limits.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/native/request.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/signals.h"
#include "probe/live/leftovers.h"

namespace taskcell::live {
namespace {

constexpr uint64_t kUsPerMs = 1000;
constexpr uint64_t kFloodDeadlineMs = 5000;

std::vector<Attempt> LimitAttempts(const Asked& asked, const cell::CellPlan& plan) {
  std::vector<Attempt> attempts = {{Payload::kPids, asked.limits.pids},
                                   {Payload::kFiles, asked.limits.nofile}};
  for (const cell::PlannedTmpfs& tmpfs : plan.tmpfs)
    attempts.push_back({Payload::kTmpfs, tmpfs.size_bytes, tmpfs.target});
  attempts.push_back({Payload::kCpu, asked.limits.cpu_millis});
  attempts.push_back({Payload::kMemory, asked.limits.memory_bytes});  // last: it may take all along
  return attempts;
}

Result<TrialOrders> OrdersFor(const Setting& setting, const Asked& asked, uint64_t deadline_ms) {
  TrialOrders orders;
  orders.deadline_ms = deadline_ms;
  orders.plan = PlanProbe(asked, setting.uid, setting.gid);
  orders.plan.run_id = TRY(native::MakeRunId());
  orders.plan.home_label = kProbeHomeLabel;
  orders.plan.deadline_unix_ms =
      sys::UnixMs() + static_cast<int64_t>(deadline_ms) + kAbandonedAfterMs;
  orders.plan.root = setting.root;
  orders.plan.root_source = setting.root_source;
  orders.plan.mounts = setting.mounts;
  orders.output_bytes = asked.output_bytes;
  return orders;
}

// One trial; where none could be made the report says why, and nothing is returned.
std::optional<Trial> Try(probe::CellEngine& engine, const Setting& setting,
                         const TrialOrders& orders, const std::function<bool()>& stopped,
                         Report& report) {
  if (stopped()) {
    report.refusal = Error(Kind::kSystem, "the probe was stopped").Coded("stopped");
    return std::nullopt;
  }
  Result<Trial> trial = RunTrial(engine, setting.places, orders);
  if (!trial.ok()) {
    report.refusal = std::move(trial).error();
    return std::nullopt;
  }
  for (const std::string& warning : trial->warnings) {
    bool is_new =
        std::find(report.warnings.begin(), report.warnings.end(), warning) == report.warnings.end();
    if (is_new) report.warnings.push_back(warning);
  }
  for (const cell::Mismatch& mismatch : trial->mismatches) {
    // Of a limit the table tells; a file system's size is one of them.
    if (mismatch.is_limit || mismatch.field.starts_with("tmpfs:")) continue;
    std::string text = cell::Describe(mismatch);
    bool is_new = std::find(report.differences.begin(), report.differences.end(), text) ==
                  report.differences.end();
    if (is_new) report.differences.push_back(std::move(text));
  }
  return std::move(trial).value();
}

Result<HostFacts> ReadHostFacts() {
  HostFacts host;
  host.has_swap = TRY(sys::HostHasSwap());
  host.processors = std::max(1U, std::thread::hardware_concurrency());
  return host;
}

Status BreakAll(probe::CellEngine& engine, const Setting& setting, const Asked& asked,
                const std::function<bool()>& stopped, Report& report) {
  HostFacts host = TRY(ReadHostFacts());
  TrialOrders orders = TRY(OrdersFor(setting, asked, LimitsDeadlineMs(asked)));
  orders.attempts = LimitAttempts(asked, orders.plan);
  std::optional<Trial> trial = Try(engine, setting, orders, stopped, report);
  if (!trial) return Ok();
  report.rows = JudgeLimits(asked, host, *trial);

  orders = TRY(OrdersFor(setting, asked, kFloodDeadlineMs));
  orders.attempts = {{Payload::kFlood, asked.output_bytes}};
  trial = Try(engine, setting, orders, stopped, report);
  if (!trial) return Ok();
  report.rows.push_back(JudgeOutput(asked, *trial));

  orders = TRY(OrdersFor(setting, asked, asked.deadline_ms));
  orders.attempts = {{Payload::kLinger, asked.deadline_ms}};
  trial = Try(engine, setting, orders, stopped, report);
  if (!trial) return Ok();
  report.rows.push_back(JudgeDeadline(asked, *trial));
  return Ok();
}

}  // namespace

Verdict Overall(const Report& report) {
  bool refused = report.refusal && report.refusal->code == cgroup::kUnenforced;
  if (refused || !report.differences.empty()) return Verdict::kNotHeld;
  bool unknown = report.refusal.has_value() || report.rows.empty();
  for (const Row& row : report.rows) {
    if (row.verdict == Verdict::kNotHeld || row.lie) return Verdict::kNotHeld;
    unknown = unknown || row.verdict == Verdict::kUnknown;
  }
  return unknown ? Verdict::kUnknown : Verdict::kHeld;
}

Report BreakLimits(probe::CellEngine& engine, const Setting& setting, const Asked& asked,
                   const std::function<bool()>& stopped) {
  Report report;
  uint64_t start_us = sys::MonotonicUs();
  report.engine = engine.Name();
  Status broken = BreakAll(engine, setting, asked, stopped, report);
  if (!broken.ok()) report.refusal = std::move(broken).error();
  report.wall_ms = (sys::MonotonicUs() - start_us) / kUsPerMs;
  return report;
}

}  // namespace taskcell::live
