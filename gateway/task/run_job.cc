#include "gateway/task/run_job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gateway/task/stream_sink.h"
#include "gateway/task/watch.h"
#include "launcher/cgroup/events.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kHandOverWait{10};

}  // namespace

Result<Evidence> RunJob(gate::GateHost& gate, probe::RunningCell& cell, BrokerCell& way,
                        const cell::Job& job, const RunTerms& terms) {
  Evidence evidence;
  evidence.runtime = terms.runtime;
  evidence.account = terms.account;
  evidence.executable = terms.executable;
  evidence.root = terms.root;
  evidence.memory_bytes = terms.memory_bytes;
  evidence.pids = terms.pids;
  evidence.max_turns = terms.max_turns;
  evidence.timeout_ms = terms.timeout_ms;
  StreamReader reader(terms.runtime, terms.max_turns);
  StreamSink sink(reader);
  {
    std::unique_ptr<JobWatch> watch =
        TRY(JobWatch::Start(gate, &way, terms.cancel_fd, terms.max_turns));
    TRY(gate.HandOver(job, std::min(Clock::now() + kHandOverWait, terms.deadline)));
    Result<gate::JobEnd> end = gate.Pump(sink, terms.deadline);
    if (end.ok()) {
      evidence.end = std::move(end).value();
    } else {
      evidence.transport_error = end.error().text;
    }
    evidence.cancelled = watch->cancelled();
    evidence.over_steps = watch->over_steps();
  }
  Result<cgroup::Events> events = cell.ReadEvents();
  if (events.ok()) evidence.events = std::move(events).value();
  // On v1 the kernel may count no time for the cell: then init's count of all it reaped serves.
  if (evidence.events && !evidence.events->cpu_us &&
      evidence.end.outcome == gate::JobOutcome::kExited) {
    evidence.events->cpu_us = evidence.end.exit.user_us + evidence.end.exit.system_us;
  }
  (void)gate.Done();  // ignoring: an init that is gone already needs no word; Remove kills anyway
  evidence.run = reader.Finish(CliExit(evidence.end));
  evidence.egress = way.Detach();
  return evidence;
}

}  // namespace taskcell::gateway
