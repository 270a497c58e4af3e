#include "gateway/task/run_job.h"

#include <utility>

#include "gateway/task/relay.h"
#include "gateway/task/stream_sink.h"
#include "launcher/cgroup/events.h"

namespace taskcell::gateway {

Result<Evidence> RunJob(gate::GateHost& gate, probe::RunningCell& cell, BrokerCell& way,
                        const cell::Job& job, const RunTerms& terms) {
  Evidence evidence;
  evidence.runtime = terms.runtime;
  evidence.account = terms.account;
  evidence.budget_cents = terms.budget_cents;
  evidence.executable = terms.executable;
  evidence.root = terms.root;
  evidence.credential_inside = terms.credential_inside;
  evidence.memory_bytes = terms.memory_bytes;
  evidence.pids = terms.pids;
  evidence.max_turns = terms.max_turns;
  evidence.timeout_ms = terms.timeout_ms;
  StreamReader reader(terms.runtime, terms.max_turns);
  StreamSink sink(reader);
  TRY(RelayJob({gate, &way, job, sink, terms.max_turns, terms.deadline, terms.cancel_fd},
               evidence));
  Result<cgroup::Events> events = cell.ReadEvents();
  if (events.ok()) evidence.events = std::move(events).value();
  // On v1 the kernel may count no time for the cell: then init's count of all it reaped serves.
  if (evidence.events && !evidence.events->cpu_us &&
      evidence.end.outcome == gate::JobOutcome::kExited) {
    evidence.events->cpu_us = evidence.end.exit.user_us + evidence.end.exit.system_us;
  }
  const bool ended_by_itself = evidence.end.outcome == gate::JobOutcome::kExited &&
                               evidence.end.exit.reason == cell::ExitReason::kExited;
  if (terms.export_to != nullptr && ended_by_itself)
    evidence.exported = TakeExport(gate, *terms.export_to, terms.run_id);
  (void)gate.Done();  // ignoring: an init that is gone already needs no word; Remove kills anyway
  evidence.run = reader.Finish(CliExit(evidence.end));
  evidence.egress = way.Detach();
  return evidence;
}

}  // namespace taskcell::gateway
