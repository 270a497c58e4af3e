#include "probe/cells/native_cell.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cgroup/events.h"
#include "launcher/cgroup/observe.h"
#include "launcher/sys/file.h"
#include "launcher/sys/other_process.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"

namespace taskcell::probe {
namespace {

constexpr int kPlanNumber = 3;
constexpr int kGateNumber = 4;
constexpr int kStatusNumber = 5;
constexpr int kKillTimeoutMs = 5000;

// The plan as a file of its own: read from its start, whole, by the launcher alone.
Result<UniqueFd> PlanFile(const cell::CellPlan& plan) {
  UniqueFd file = TRY(sys::MakeMemfd("taskcell-plan", 0));
  TRY(sys::WriteAll(file.get(), cell::EncodePlan(plan)));
  // A descriptor opened anew starts at 0 and can't write.
  return sys::Open(Text("/proc/self/fd/", file.get()), O_RDONLY);
}

Error Failed(const LaunchStatus& status) {
  if (status.code == kNoNamespaces)
    return Error(Kind::kUnsupported, "taskcell-launch: " + status.text)
        .Coded("container_create_failed");
  return Error(Kind::kSystem, "taskcell-launch: " + status.text).Coded(status.code);
}

}  // namespace

Result<std::unique_ptr<RunningCell>> NativeCell::Make(cell::CellPlan plan, const CellPlaces& places,
                                                      int cancel_fd) {
  Status sound = cell::CheckPlan(plan);
  if (!sound.ok()) return std::move(sound).error().Coded("container_refused");
  std::unique_ptr<NativeCell> made(new NativeCell(std::move(plan)));
  Status launched = made->Launch(places, cancel_fd);
  if (launched.ok()) return std::unique_ptr<RunningCell>(std::move(made));
  Error error = std::move(launched).error();
  if (error.code.empty()) error.code = "container_create_failed";
  Status removed = error.code == "stopped" ? made->EndLauncher() : made->Remove();
  if (!removed.ok()) error.text += Text("; and left behind: ", removed.error().text);
  return error;
}

NativeCell::~NativeCell() {
  (void)Remove();  // ignoring: the next launch of this user removes a dead run's cgroup
}

Status NativeCell::Launch(const CellPlaces& places, int cancel_fd) {
  UniqueFd plan_file = TRY(PlanFile(plan_));
  auto gate = TRY(sys::MakePacketPair());
  auto status = TRY(sys::MakePipe());
  const std::array<sys::PassedDescriptor, 3> passed = {{{plan_file.get(), kPlanNumber},
                                                        {gate.second.get(), kGateNumber},
                                                        {status.write_end.get(), kStatusNumber}}};
  launcher_ = TRY(sys::SpawnProgram(places.launch_program,
                                    {"taskcell-launch", "--plan-fd", std::to_string(kPlanNumber),
                                     "--gate-fd", std::to_string(kGateNumber), "--status-fd",
                                     std::to_string(kStatusNumber), "--userns", "prefer-subids"},
                                    {}, passed));
  status_ = std::move(status.read_end);
  gate_ = std::move(gate.first);
  gate.second.Reset();
  status.write_end.Reset();

  LaunchStatus made = TRY(ReadStatus(Clock::now() + kLaunchTimeout, cancel_fd));
  if (made.event == LaunchStatus::Event::kFailed) return Failed(made);
  if (made.event != LaunchStatus::Event::kMade)
    return Error(Kind::kSystem, "taskcell-launch ended before it made the cell");
  if (made.keyring_stays) {
    plan_.keyring_may_stay = true;
    warnings_.emplace_back(
        "the cell kept this process's session keyring, since no new one can be had (the sysctl "
        "kernel.keys.maxkeys, or keyctl is forbidden here); the filter denies every call that "
        "would use it");
  }
  host_pid_ = made.pid;
  pidfd_ = TRY(sys::OpenPidfd(host_pid_));
  return Ok();
}

Result<LaunchStatus> NativeCell::ReadStatus(Clock::time_point deadline, int cancel_fd) {
  while (true) {
    std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return ParseLaunchStatus(line);
    }
    if (unread_.size() >= kMaxStatusLineBytes)
      return Error(Kind::kViolation, "taskcell-launch's status line is too long");
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    auto wait_ms = static_cast<int>(std::max<int64_t>(left, 0));
    std::array<struct pollfd, 2> wait = {{{status_.get(), POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
    const int ready = TRY(sys::PollAll(wait, wait_ms));
    if (wait[1].revents != 0)
      return Error(Kind::kSystem, "the cell is no longer waited for, as asked", ECANCELED)
          .Coded("stopped");
    if (ready == 0)
      return Error(Kind::kSystem, "taskcell-launch did not report in time", ETIMEDOUT);
    std::array<char, 4096> chunk;
    std::size_t got = TRY(sys::Read(status_.get(), chunk));
    if (got == 0) return Error(Kind::kSystem, "taskcell-launch ended without a report", ECONNRESET);
    unread_.append(chunk.data(), got);
  }
}

Result<cell::OutsideAttestation> NativeCell::Observe() { return cgroup::Observe(host_pid_); }

Result<cgroup::Events> NativeCell::ReadEvents() { return cgroup::ReadEventsOf(TRY(Observe())); }

Status NativeCell::Kill() {
  if (!pidfd_.valid()) return Ok();
  // PID 1 of the cell's own pid namespace: with it the kernel ends every process of the cell. The
  // launcher that made that namespace runs as this user, so this user may.
  Status killed = sys::SignalPidfd(pidfd_.get(), SIGKILL);
  if (!killed.ok() && killed.error().err != ESRCH) return killed;
  if (TRY(sys::Poll(pidfd_.get(), POLLIN, kKillTimeoutMs)) != 0) return Ok();
  return Error(Kind::kSystem, Text("the cell's process ", host_pid_, " did not end within ",
                                   kKillTimeoutMs, " ms of being killed"))
      .Coded("cleanup_failed");
}

// Waits for the launcher, which removes the cgroup when the cell is gone.
Status NativeCell::AwaitEnd(std::chrono::milliseconds limit) {
  if (!launcher_.valid()) return Ok();
  auto timeout_ms = static_cast<int>(limit.count());
  if (TRY(sys::Poll(launcher_.pidfd(), POLLIN, timeout_ms)) == 0) {
    launcher_ = sys::Child();  // kills and reaps
    return Error(Kind::kSystem, Text("taskcell-launch did not end within ", timeout_ms,
                                     " ms and was killed; its cgroup goes with the next launch"))
        .Coded("cleanup_failed");
  }
  TRY(launcher_.Wait());
  return Ok();
}

Status NativeCell::Remove() {
  gate_.Reset();  // init sees the end and kills what it started
  TRY(Kill());
  return AwaitEnd(kLaunchEndTimeout);
}

// Of a launcher that is still making the cell: it undoes what it has made so far.
Status NativeCell::EndLauncher() {
  gate_.Reset();
  (void)launcher_.Signal(SIGTERM);  // ignoring: ESRCH, it has ended by itself
  return AwaitEnd(kLaunchFarewell);
}

}  // namespace taskcell::probe
