#include "launcher/native/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <array>
#include <cerrno>
#include <span>

#include "launcher/base/text.h"
#include "launcher/cell/compare.h"
#include "launcher/cgroup/observe.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

// How long init may take to go after it was told that it may.
constexpr int kGoodbyeTimeoutMs = 2000;
// How long what a killed cell has said may take to be read.
constexpr uint64_t kDrainAfterKillMs = 1000;

class Supervisor {
 public:
  Supervisor(NativeCell& cell, GateClient& gate, const Watch& watch)
      : cell_(cell),
        gate_(gate),
        signals_(watch.signals),
        streams_(watch.streams),
        start_us_(sys::MonotonicUs()),
        grace_us_(watch.limit.grace_ms * 1000),
        oom_group_(watch.oom_group) {
    if (watch.limit.timeout_ms != 0) deadline_us_ = start_us_ + watch.limit.timeout_ms * 1000;
  }

  Result<Outcome> Run(const cell::Job& job);

 private:
  Result<bool> Turn();
  Result<bool> TakeMessage();
  Status PassSignal();
  void BeginGrace();
  Status Send(int signal);
  int LeftMs() const;
  Result<bool> EndAtDeadline();
  Status Kill();
  Status Drain();

  NativeCell& cell_;
  GateClient& gate_;
  int signals_;
  Streams& streams_;
  uint64_t start_us_;
  uint64_t grace_us_;
  bool oom_group_;
  uint64_t deadline_us_ = 0;   // 0: none
  bool asked_to_end_ = false;  // by the caller's signal: the deadline is that of the grace period
  bool rests_ = false;         // it has nothing to do for a while
  Outcome outcome_;
};

int Supervisor::LeftMs() const {
  if (deadline_us_ == 0) return -1;
  uint64_t now = sys::MonotonicUs();
  if (now >= deadline_us_) return 0;
  constexpr uint64_t kLongestPollMs = 3'600'000;
  return static_cast<int>(std::min((deadline_us_ - now) / 1000 + 1, kLongestPollMs));
}

Status Supervisor::PassSignal() {
  int signal = TRY(sys::TakeSignal(signals_));
  if (signal == SIGWINCH) streams_.TakeWindowSize();
  if (signal == 0 || signal == SIGWINCH) return Ok();
  if (signal == SIGTERM || signal == SIGHUP) BeginGrace();
  return Send(signal);
}

// What does not end when the caller asks it to is killed as after the time limit.
void Supervisor::BeginGrace() {
  if (asked_to_end_ || outcome_.timed_out) return;
  asked_to_end_ = true;
  uint64_t until_us = sys::MonotonicUs() + grace_us_;
  if (deadline_us_ == 0 || until_us < deadline_us_) deadline_us_ = until_us;
}

Status Supervisor::Send(int signal) {
  Status sent = gate_.SendSignal(signal);
  // A gate closed meanwhile is seen by the next read; the signal has nobody left to go to.
  if (!sent.ok() && sent.error().err == EPIPE) return Ok();
  return sent;
}

// Asks the job to end first. Then kills the cell from outside (init is PID 1, with it goes the
// whole pid namespace), and it is over.
Result<bool> Supervisor::EndAtDeadline() {
  if (asked_to_end_) {
    TRY(Kill());
    return true;
  }
  if (!outcome_.timed_out && grace_us_ > 0) {
    outcome_.timed_out = true;
    deadline_us_ = sys::MonotonicUs() + grace_us_;
    TRY(Send(SIGTERM));
    return false;
  }
  outcome_.timed_out = true;
  TRY(Kill());
  return true;
}

Status Supervisor::Kill() {
  outcome_.killed = true;
  // ignoring: with init, process 1 of the cell's pid namespace, go all the others
  (void)cell_.cgroup().Kill();
  return cell_.init().Signal(SIGKILL);
}

// What the cell has written may still be on its way. A signal says that nobody waits for it; else
// it has the job's time, and a moment where the cell had to be killed.
Status Supervisor::Drain() {
  if (outcome_.killed) deadline_us_ = sys::MonotonicUs() + kDrainAfterKillMs * 1000;
  while (!streams_.drained()) {
    std::array<struct pollfd, 1 + Streams::kEntries> watched = {{{signals_, POLLIN, 0}}};
    auto streams = std::span(watched).last<Streams::kEntries>();
    streams_.Ask(streams);
    if (TRY(sys::PollAll(watched, LeftMs())) == 0 && LeftMs() == 0) {
      if (!outcome_.killed) outcome_.timed_out = true;
      return Ok();
    }
    if (watched[0].revents != 0 && TRY(sys::TakeSignal(signals_)) != SIGWINCH) return Ok();
    streams_.Act(streams);
  }
  return Ok();
}

// True when the job is over.
Result<bool> Supervisor::TakeMessage() {
  cell::FrameReader::Message message;
  if (!TRY(gate_.Receive(message))) return false;
  switch (message.type) {
    case cell::FrameType::kStarted:
      return false;
    case cell::FrameType::kRefused:
      outcome_.refusal = TRY(cell::ParseRefusal(message.payload));
      return true;
    case cell::FrameType::kExit:
      outcome_.exit = TRY(cell::ParseExit(message.payload));
      return true;
    default:
      break;
  }
  return Error(Kind::kViolation, Text("the cell sent a message of type ",
                                      static_cast<int>(message.type), " out of place"));
}

Result<bool> Supervisor::Turn() {
  std::array<struct pollfd, 2 + Streams::kEntries> watched = {
      {{gate_.fd(), POLLIN, 0}, {signals_, POLLIN, 0}}};
  auto streams = std::span(watched).last<Streams::kEntries>();
  streams_.Ask(streams);
  int wait_ms = LeftMs();
  if (!rests_ && (wait_ms < 0 || wait_ms > kRestAfterMs)) wait_ms = kRestAfterMs;
  if (TRY(sys::PollAll(watched, wait_ms)) == 0) {
    if (LeftMs() == 0) return EndAtDeadline();
    if (!rests_) sys::ReleaseProgramCode();
    rests_ = true;
    return false;
  }
  if (watched[1].revents != 0) TRY(PassSignal());
  streams_.Act(streams);
  if (streams_.exceeded()) {
    outcome_.output_exceeded = true;
    TRY(Kill());
    return true;
  }
  // A stream that never rests must not put the deadline off.
  if (deadline_us_ != 0 && LeftMs() == 0) return EndAtDeadline();
  if (watched[0].revents == 0) return false;
  return TakeMessage();
}

Result<Outcome> Supervisor::Run(const cell::Job& job) {
  TRY(streams_.Begin());
  TRY(gate_.SendJob(job));
  cgroup::EventFiles counts = TRY(cell_.cgroup().OpenEventFiles());
  while (true) {
    Result<bool> over = Turn();
    if (!over.ok()) {
      if (over.error().err != EPIPE) return std::move(over).error();
      cgroup::Events events = TRY(counts.Read());
      if (oom_group_ && events.oom_kills > 0) {
        outcome_.killed = true;
        break;
      }
      return Error(Kind::kSystem,
                   Text("taskcell-init died before the program ended",
                        events.oom_kills > 0 ? " (the kernel killed for want of memory: raise "
                                               "--memory)"
                                             : ""),
                   EPIPE);
    }
    if (over.value()) break;
  }
  outcome_.wall_us = sys::MonotonicUs() - start_us_;
  // The cell's end does not take the evidence along: its cgroup is removed here.
  if (outcome_.refusal)
    (void)gate_.SendDone();  // ignoring: only where no job was init waits for it
  outcome_.events = TRY(counts.Read());
  if (!outcome_.killed) {
    short gone = TRY(sys::Poll(cell_.init().pidfd(), POLLIN, kGoodbyeTimeoutMs));
    if (gone == 0) TRY(cell_.init().Signal(SIGKILL));
  }
  TRY(cell_.init().Wait());
  TRY(Drain());
  TRY(streams_.Check());
  if (streams_.exceeded()) outcome_.output_exceeded = true;
  return outcome_;
}

// Why a cell's init fell silent before any program ran.
Error ExplainSilence(Error error, const cell::CellPlan& plan, const NativeCell& cell) {
  Result<cgroup::Events> events = cell.cgroup().ReadEvents();
  if (!events.ok() || events->oom_kills == 0) return error;
  return Error(Kind::kConfig, cgroup::TooLittleMemory(plan.limits.memory_bytes), ENOMEM);
}

Error MismatchError(const std::vector<cell::Mismatch>& mismatches) {
  std::string text = "the cell is not what was planned, nothing ran in it:";
  bool only_limits = true;
  for (const cell::Mismatch& mismatch : mismatches) {
    text += Text("\n  ", cell::Describe(mismatch));
    only_limits = only_limits && mismatch.is_limit;
  }
  Error error(Kind::kViolation, std::move(text));
  return std::move(error).Coded(only_limits ? "resource_limits_unenforced" : "cell_mismatch");
}

}  // namespace

Result<Verified> VerifyCell(const cell::CellPlan& plan, NativeCell& cell, GateClient& gate) {
  cell::Attestation seen;
  // Looked at from here while init looks from inside. When init failed, that is the reason to tell.
  Result<cell::OutsideAttestation> outside = cell.cgroup().Observe(cell.pid());
  Result<cell::InsideAttestation> inside = gate.ReceiveAttestation();
  if (!inside.ok())
    return ExplainSilence(std::move(inside).error().With("attestation"), plan, cell);
  seen.inside = std::move(inside).value();
  seen.outside = TRY(std::move(outside).With("outside attestation"));
  cell::CellPlan planned = plan;
  planned.keyring_may_stay = cell.keyring_stays();
  std::vector<cell::Mismatch> mismatches = cell::Compare(planned, cell::Engine::kNative, seen);
  if (mismatches.empty())
    return Verified{cell::CallsLeftOpen(seen.inside), seen.inside.landlock_abi};
  return MismatchError(mismatches);
}

Result<Outcome> Supervise(NativeCell& cell, GateClient& gate, const cell::Job& job,
                          const Watch& watch) {
  return Supervisor(cell, gate, watch).Run(job);
}

int ExitStatus(const Outcome& outcome) {
  if (outcome.output_exceeded) return kExitOutput;
  if (outcome.timed_out || outcome.exit.reason == cell::ExitReason::kDeadline) return kExitTimedOut;
  if (outcome.refusal) {
    if (outcome.refusal->stage != "exec") return kExitFailed;
    return outcome.refusal->err == ENOENT ? kExitNotFound : kExitCannotExecute;
  }
  if (outcome.killed) return kExitSignalBase + SIGKILL;
  if (outcome.exit.signal != 0) return kExitSignalBase + outcome.exit.signal;
  return outcome.exit.code;
}

}  // namespace taskcell::native
