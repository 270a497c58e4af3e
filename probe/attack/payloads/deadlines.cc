// Outliving the cell's time limit, or the job it belongs to.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/sys/job_control.h"
#include "launcher/sys/process.h"
#include "launcher/sys/signals.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "deadlines";

// Well past the deadline.
void Outlive(const Targets& targets) {
  constexpr uint64_t kFactor = 3;
  constexpr int64_t kNsPerMs = 1'000'000;
  auto until = static_cast<int64_t>(targets.deadline_ms * kFactor);
  struct timespec left = {until / 1000, until % 1000 * kNsPerMs};
  while (Call(SYS_nanosleep, &left, &left) == -EINTR) {
  }
}

Attempted StayDeaf(const Targets& targets) {
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM})
    (void)sys::IgnoreSignal(signal);  // ignoring: one less to be deaf to
  Outlive(targets);
  return {};
}

Attempted LeaveSession(const Targets& targets) {
  // The first process of a group can lead no session, its child can.
  Result<sys::Cloned> cloned = sys::CloneProcess(0);
  if (!cloned.ok()) return {cloned.error().err};
  if (!cloned->in_child) {
    Result<sys::ExitInfo> ended = cloned->child.Wait();
    sys::ExitNow(ended.ok() ? ended->status : 1);
  }
  Status started = sys::StartSession();
  if (!started.ok()) return {started.error().err};
  Outlive(targets);
  return {};
}

// With no descriptor left nobody learns of its end by the end of a stream.
Attempted CloseEverything(const Targets& targets) {
  Result<sys::Cloned> cloned = sys::CloneProcess(0);
  if (!cloned.ok()) return {cloned.error().err};
  if (cloned->in_child) {
    (void)sys::CloseRange(0, ~0U);  // ignoring: then it has some, and stays all the same
    Outlive(targets);
    sys::ExitNow(0);
  }
  Result<sys::ExitInfo> ended = cloned->child.Wait();
  return {ended.ok() ? 0 : ended.error().err};
}

// The job's own process ends at once: what is left is nobody's child.
Attempted ForkTwice(const Targets& targets) {
  for (int i = 0; i < 2; ++i) {
    Result<sys::Cloned> cloned = sys::CloneProcess(0);
    if (!cloned.ok()) return {cloned.error().err};
    if (!cloned->in_child) sys::ExitNow(0);  // without the destructor, which would end the child
    (void)sys::StartSession();  // ignoring: then it is in its parent's, and tries all the same
  }
  Outlive(targets);
  return {};
}

// Stopped, and continued by a helper past the deadline. A cell may as well continue it at once.
Attempted StopItself(const Targets& targets) {
  constexpr uint64_t kUsPerMs = 1000;
  uint64_t start_us = sys::MonotonicUs();
  int64_t own = Call(SYS_getpid);
  Result<sys::Cloned> helper = sys::CloneProcess(0);
  if (!helper.ok()) return {helper.error().err};
  if (helper->in_child) {
    Outlive(targets);
    (void)Call(SYS_kill, own, SIGCONT);
    sys::ExitNow(0);
  }
  int64_t stopped = Call(SYS_kill, own, SIGSTOP);
  if (stopped < 0) return Of(stopped);
  bool late = sys::MonotonicUs() - start_us > targets.deadline_ms * kUsPerMs;
  return late ? Attempted{} : Attempted{kNoEffect, "continued at once"};
}

// A process that waits for its vfork child takes no signal but the last.
Attempted WaitInVfork(const Targets& targets) {
  // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): to be where no signal is taken
  pid_t child = ::vfork();
  if (child < 0) return {EAGAIN};
  if (child == 0) {
    Outlive(targets);  // NOLINT(clang-analyzer-unix.Vfork): raw calls only
    ::_exit(0);
  }
  return {};
}

constexpr Payload kPayloads[] = {
    {"deadline-deaf",
     kTopic,
     "stay past the deadline, deaf to every signal",
     Control::kUser,
     {-SIGKILL},
     StayDeaf,
     Way::kDeadline},
    {"deadline-session",
     kTopic,
     "stay past the deadline in another session",
     Control::kUser,
     {-SIGKILL},
     LeaveSession,
     Way::kDeadline},
    {"deadline-without-descriptors",
     kTopic,
     "stay past the deadline with every descriptor closed",
     Control::kUser,
     {-SIGKILL},
     CloseEverything,
     Way::kDeadline},
    {"deadline-stop",
     kTopic,
     "stay past the deadline by being stopped",
     Control::kUser,
     {-SIGKILL, kNoEffect},
     StopItself,
     Way::kDeadline},
    {"deadline-vfork",
     kTopic,
     "stay past the deadline where signals are not taken",
     Control::kUser,
     {-SIGKILL},
     WaitInVfork,
     Way::kDeadline},
    {"double-fork",
     kTopic,
     "outlive its job as nobody's child",
     Control::kUser,
     {kEndedAlong},
     ForkTwice,
     Way::kFirst},
};

}  // namespace

std::span<const Payload> DeadlinePayloads() { return kPayloads; }

}  // namespace taskcell::attack
