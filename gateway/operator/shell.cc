#include "gateway/operator/shell.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/config/agent_config.h"
#include "gateway/egress/start_thread.h"
#include "gateway/operator/own_cell.h"
#include "gateway/runtimes/plan_job.h"
#include "gateway/task/admission.h"
#include "gateway/task/plan_task.h"
#include "gateway/task/relay.h"
#include "gateway/task/task_record.h"
#include "gateway/task/weaker_mode.h"
#include "launcher/base/defer.h"
#include "launcher/base/text.h"
#include "launcher/native/streams.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kDrain{1000};
constexpr char kStart[] = "command -v bash >/dev/null 2>&1 && exec bash -i; exec sh -i";

// A job at a terminal has no output frames: whoever sends one breaks the rules.
class NoOutput : public gate::OutputSink {
 public:
  bool OnStdout(std::string_view) override { return false; }
  bool OnStderr(std::string_view) override { return false; }
};

// What the caller's terminal is called, where that is a name.
std::string TerminalName(const Environment& environment) {
  constexpr std::size_t kMaxBytes = 64;
  const std::string name(Lookup(environment, "TERM"));
  auto ordinary = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._+").find(c) != std::string_view::npos;
  };
  const bool sound =
      !name.empty() && name.size() <= kMaxBytes && std::all_of(name.begin(), name.end(), ordinary);
  return sound ? name : "dumb";
}

cell::Job ShellJob(const Receipt& receipt, const Environment& environment) {
  cell::Job job;
  job.argv = {"sh", "-c", kStart};
  job.environment = {"PATH=/usr/local/bin:/usr/bin:/bin",
                     Text("HOME=", kJobHome),
                     Text("TMPDIR=", kJobTmp),
                     "LANG=C.UTF-8",
                     "TZ=UTC",
                     Text("TERM=", TerminalName(environment))};
  job.working_directory = std::string(kJobDirectory);
  job.home = std::string(kJobHome);
  job.directories.push_back(std::string(kJobTmp));
  job.stdio = cell::JobStdio::kTerminal;
  job.timeout_ms = kShellLimitMs;
  if (receipt.plan.network != cell::NetworkMode::kOpen)
    job.loopback_port = receipt.seen.inside.listener_port;
  job.tunnel_port = receipt.seen.inside.tunnel_port;
  return job;
}

// Carries what is typed and shown until `done` is readable, and what is still to be shown then.
Status Carry(native::Streams& streams, int windows, int done) {
  constexpr std::size_t kEntries = native::Streams::kEntries;
  std::array<struct pollfd, 2 + kEntries> watched = {{{done, POLLIN, 0}, {windows, POLLIN, 0}}};
  const auto carried = std::span(watched).last<kEntries>();
  std::optional<Clock::time_point> until;
  while (!until.has_value() || (Clock::now() < *until && !streams.drained())) {
    streams.Ask(carried);
    TRY(sys::PollAll(watched, until.has_value() ? static_cast<int>(kDrain.count()) : -1));
    if (watched[1].revents != 0 && TRY(sys::TakeSignal(windows)) == SIGWINCH)
      streams.TakeWindowSize();
    streams.Act(carried);
    if (watched[0].revents == 0) continue;
    until = Clock::now() + kDrain;
    watched[0].fd = -1;  // poll leaves it out from now on
  }
  return Ok();
}

// Why the shell did not start, or how it ended.
Result<int> StatusOf(const Evidence& evidence) {
  constexpr int kTimedOut = 124;
  constexpr int kEnded = 130;
  constexpr int kSignalBase = 128;
  const gate::JobEnd& end = evidence.end;
  if (!evidence.transport_error.empty())
    return Error(Kind::kSystem, Text("the shell's run broke off: ", evidence.transport_error))
        .Coded("transport_failed");
  if (end.outcome == gate::JobOutcome::kRefused)
    return Error(Kind::kConfig, Text("the cell's first process could not start `sh` (",
                                     end.refusal.stage, ": ", Printable(end.refusal.text),
                                     "); a shell must be in the image, or natively "
                                     "in [taskcell] root"))
        .Coded("shell_missing");
  if (evidence.cancelled) return kEnded;
  if (end.deadline_passed || end.exit.reason == cell::ExitReason::kDeadline) return kTimedOut;
  if (end.outcome != gate::JobOutcome::kExited)
    return Error(Kind::kSystem, "the cell ended before its shell did").Coded("transport_failed");
  return end.exit.signal != 0 ? kSignalBase + end.exit.signal : end.exit.code;
}

Result<int> AtTerminal(VerifiedCell& verified, int windows, const Surroundings& surroundings) {
  // Nobody serves them: what is asked of a provider is refused.
  verified.ways.listener.Reset();
  verified.ways.tunnel_listener.Reset();
  const cell::Job job = ShellJob(verified.receipt, surroundings.environment);
  UniqueFd done = TRY(sys::MakeEvent());
  NoOutput none;
  Evidence evidence;
  Status relayed = Ok();
  Status carried = Ok();
  {
    native::Streams streams = TRY(native::Streams::Make(0, true));
    TRY(streams.TakeTerminal(std::move(verified.terminal)));
    std::thread pump = TRY(StartThread([&] {
      const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(kShellLimitMs);
      relayed = RelayJob({verified.gate, nullptr, job, none, 0, deadline, surroundings.cancel_fd},
                         evidence);
      (void)sys::SignalEvent(done.get());  // ignoring: an eventfd at its first signal takes it
    }));
    Defer join([&] { pump.join(); });
    carried = streams.Begin();
    if (carried.ok()) carried = Carry(streams, windows, done.get());
    if (!carried.ok()) verified.gate.Cancel();
  }
  TRY(std::move(relayed));
  TRY(std::move(carried).With("the terminal"));
  return StatusOf(evidence);
}

std::string_view WaysOut(const cell::CellPlan& plan) {
  return plan.network == cell::NetworkMode::kOpen
             ? "it has no credential, and no way out but the engine's network"
             : "it has no credential and no way to a provider";
}

Status CheckAgent(const Agent& agent) {
  if (agent.config.sandbox_enabled) return Ok();
  return Error(Kind::kConfig, Text("tasks of agent `", agent.config.name,
                                   "` get no cell: set [container] sandbox_enabled = true in its "
                                   "agent.toml"))
      .Coded("sandbox_disabled");
}

}  // namespace

Result<int> RunShell(const Home& home, const std::string& name, Surroundings& surroundings,
                     const std::function<void(std::string_view)>& tell) {
  // Before there is another thread, which would get the signal instead.
  sys::CaughtSignals windows = TRY(sys::CatchSignals({SIGWINCH}));
  const Agent agent = TRY(FindAgent(home, name));
  TRY(CheckAgent(agent));
  Admission admission = TRY(AdmitCell(home, agent.config, surroundings));
  PlannedTask task = TRY(PlanTask(home, agent, admission, surroundings, TaskRequest()));
  auto warn = [&tell](const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings) tell(Text("warning: ", Printable(warning)));
  };
  warn(admission.warnings);
  warn(task.Warnings());
  task.plan.terminal = true;
  task.plan.deadline_unix_ms = UnixMilliseconds() + static_cast<int64_t>(kShellLimitMs);
  Receipt receipt;
  receipt.agent = agent.config.name;
  receipt.plan = task.plan;
  TRY(NoteOpenEgress(home, FamilyName(admission.runtime), receipt));
  warn(receipt.warnings);
  int status = 0;
  Status ran = InOwnCell({home, task.directory, *admission.engine, surroundings, agent.config.name},
                         task.plan, [&](VerifiedCell& verified) -> Status {
                           warn(verified.cell.warnings());
                           tell(Text("the cell is verified (", Printable(admission.engine->Name()),
                                     "); ", WaysOut(task.plan), "; exit ends it"));
                           status = TRY(AtTerminal(verified, windows.fd.get(), surroundings));
                           return Ok();
                         });
  Status released = task.snapshot.Release(ran.ok());
  Status removed = task.directory.Remove();
  if (!ran.ok()) {
    task.directory.RemoveEmptyParents();
    return Beside(std::move(ran).error(), {released, removed});
  }
  TRY(std::move(released));
  TRY(std::move(removed));
  return status;
}

}  // namespace taskcell::gateway
