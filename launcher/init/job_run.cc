#include "launcher/init/job_run.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/init/relay.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/terminal.h"

namespace taskcell::init {
namespace {

using cell::ExitReason;
using cell::FrameReader;
using cell::FrameType;

constexpr uint64_t kMicrosecondsPerMs = 1000;
constexpr int kMaxSignal = 64;
constexpr uint64_t kLongestMs = 60'000;
constexpr uint64_t kKillAgainMs = 20;

// One job from its start to its end. The order of things: its process ends (by itself, or because
// everything was killed), everything else is killed and reaped, the output runs dry, kExit.
class JobRun {
 public:
  JobRun(const RunningJob& job, UniqueFd signals, Gate& gate)
      : job_(job), gate_(gate), signals_(std::move(signals)) {
    if (job_.timeout_ms > 0) deadline_us_ = job_.started_us + job_.timeout_ms * kMicrosecondsPerMs;
  }

  // Whether everything is gone.
  Result<bool> UntilEnded();

 private:
  Status Turn();
  int TimeoutMs() const;
  void CheckClock();
  Status Obey();
  Status ObeyOne(const FrameReader::Message& message);
  Status Reap();
  void TakeEvent(const sys::ChildEvent& event);
  bool TakesTerminal();
  void End(ExitReason reason);
  Status ReportExit();
  bool Finished() { return ended_ && none_left_ && job_.relay.finished(); }

  const RunningJob& job_;
  Gate& gate_;
  UniqueFd signals_;
  std::optional<uint64_t> deadline_us_;  // of the job, or, once it is ending, of the ending
  bool ending_ = false;                  // everything was killed
  bool ended_ = false;                   // the first process was reaped
  bool none_left_ = false;               // and every other one, too
  bool given_up_ = false;                // on some that do not go away
  cell::JobExit exit_;
};

Result<bool> JobRun::UntilEnded() {
  while (!Finished()) TRY(Turn());
  TRY(ReportExit());
  return !given_up_;
}

// Waits for whatever comes first and does it.
Status JobRun::Turn() {
  std::array<struct pollfd, 2 + Relay::kEntries> entries = {};
  struct pollfd& gate = entries[0];
  gate = {gate_.fd(), POLLIN, 0};
  entries[1] = {signals_.get(), POLLIN, 0};
  auto streams = std::span(entries).last<Relay::kEntries>();
  job_.relay.Ask(streams, gate);
  TRY(sys::PollAll(entries, TimeoutMs()));
  CheckClock();
  if ((gate.revents & (POLLIN | POLLHUP | POLLERR)) != 0) TRY(Obey());
  if (entries[1].revents != 0) sys::DrainSignals(signals_.get());
  TRY(Reap());
  // ignoring: whether any is left is what reaping finds out
  if (ending_ && !none_left_) (void)job_.kill_all();
  return job_.relay.Act(streams, gate, gate_);
}

int JobRun::TimeoutMs() const {
  if (!deadline_us_) return -1;
  uint64_t now = sys::MonotonicUs();
  if (now >= *deadline_us_) return 0;
  const uint64_t longest_ms = ending_ ? kKillAgainMs : kLongestMs;
  uint64_t left_ms = (*deadline_us_ - now + kMicrosecondsPerMs - 1) / kMicrosecondsPerMs;
  return static_cast<int>(left_ms < longest_ms ? left_ms : longest_ms);
}

void JobRun::CheckClock() {
  if (!deadline_us_ || sys::MonotonicUs() < *deadline_us_) return;
  if (!ending_) return End(ExitReason::kDeadline);
  // What was killed does not go away (a process stuck in the kernel). Init's own exit takes it.
  given_up_ = !none_left_ || !ended_;
  ended_ = true;
  none_left_ = true;
  job_.relay.Abandon();
}

Status JobRun::Obey() {
  FrameReader::Message message;
  Result<bool> whole = gate_.Receive(message);
  if (!whole.ok() && whole.error().err == EAGAIN) return Ok();
  if (TRY(std::move(whole))) return ObeyOne(message);
  return Ok();
}

Status JobRun::ObeyOne(const FrameReader::Message& message) {
  if (message.type == FrameType::kCancel) {
    if (!ending_) End(ExitReason::kCancelled);
    return Ok();
  }
  if (message.type == FrameType::kSignal && message.payload.size() == 1) {
    int signal = static_cast<unsigned char>(message.payload[0]);
    if (signal > 0 && signal <= kMaxSignal) {
      if (ended_) return Ok();
      return sys::SignalGroup(job_.pid, signal);
    }
  }
  return Error(Kind::kViolation, Text("gate: a message of type ", static_cast<int>(message.type),
                                      " that is not due while a job runs"));
}

Status JobRun::Reap() {
  while (!none_left_) {
    std::optional<sys::ChildEvent> event = TRY(sys::NextChildEvent(none_left_));
    if (!event) return Ok();
    TakeEvent(*event);
  }
  return Ok();
}

bool JobRun::TakesTerminal() {
  return job_.foreground && sys::SetForeground(STDIN_FILENO, job_.pid).ok();
}

void JobRun::TakeEvent(const sys::ChildEvent& event) {
  bool first = event.pid == job_.pid && !ended_;
  if (event.stopped) {
    // Nobody in the cell could continue it, and whoever is at the terminal has no shell here. But a
    // job that wants the terminal would only stop again at once, unless it may have it.
    bool wants_terminal = event.signal == SIGTTIN || event.signal == SIGTTOU;
    if (!first || (wants_terminal && !TakesTerminal())) return;
    (void)sys::SignalGroup(job_.pid, SIGCONT);  // ignoring: it may be dying
    return;
  }
  if (!first) return;
  ended_ = true;
  exit_.code = event.status;
  exit_.signal = event.signal;
  exit_.wall_us = sys::MonotonicUs() - job_.started_us;
  if (!ending_) End(ExitReason::kExited);
}

void JobRun::End(ExitReason reason) {
  ending_ = true;
  exit_.reason = reason;
  deadline_us_ = sys::MonotonicUs() + kEndingTimeoutMs * kMicrosecondsPerMs;
  (void)job_.kill_all();  // ignoring: it is called again until none is left
}

Status JobRun::ReportExit() {
  sys::Usage usage = TRY(sys::ChildrenUsage());
  exit_.user_us = usage.user_us - job_.usage_before.user_us;
  exit_.system_us = usage.system_us - job_.usage_before.system_us;
  return gate_.Send(FrameType::kExit, cell::EncodeExit(exit_));
}

}  // namespace

Result<bool> SuperviseJob(const RunningJob& job, Gate& gate) {
  UniqueFd signals = TRY(sys::MakeChildSignalFd());
  TRY(gate.Send(FrameType::kStarted, {}));
  return JobRun(job, std::move(signals), gate).UntilEnded();
}

Result<bool> RunJob(cell::Job job, Witness witness, Gate& gate) {
  // Not for the witness to know.
  const std::string input = std::move(job.input);
  job.input.clear();
  witness.relay().SetInput(input);
  RunningJob running{witness.child().pid(),
                     witness.relay(),
                     sys::MonotonicUs(),
                     job.timeout_ms,
                     job.foreground,
                     witness.usage(),
                     [] { return sys::SignalAll(SIGKILL); }};
  Result<bool> done = [&]() -> Result<bool> {
    const std::string refusal = TRY(witness.Become(job));
    if (!refusal.empty()) {
      TRY(gate.Send(FrameType::kRefused, refusal));
      return true;
    }
    return SuperviseJob(running, gate);
  }();
  // ignoring: init exits next, which kills them all once more
  if (!done.ok()) (void)sys::SignalAll(SIGKILL);
  return done;
}

}  // namespace taskcell::init
