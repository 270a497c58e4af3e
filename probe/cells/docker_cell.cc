#include "probe/cells/docker_cell.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/cgroup/events.h"
#include "launcher/cgroup/observe.h"
#include "launcher/sys/file.h"
#include "launcher/sys/other_process.h"
#include "launcher/sys/socket.h"
#include "probe/cells/docker_engine.h"

namespace taskcell::probe {
namespace {

constexpr int kKillTimeoutMs = 5000;
constexpr std::chrono::milliseconds kLookAgain{50};

// How long a task that was told to end waits for an engine that may hang.
constexpr std::chrono::milliseconds kFarewell{1000};

// Opens a program of the host that the cell gets and plans its mount; the descriptor pins its
// inode.
Result<UniqueFd> PlanProgram(const std::string& path, const char* target, cell::CellPlan* plan) {
  UniqueFd pin = TRY(sys::Open(path, O_PATH));
  struct stat status = TRY(sys::Stat(pin.get()));
  bool trusted = (status.st_uid == 0 || status.st_uid == ::geteuid()) &&
                 (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!S_ISREG(status.st_mode) || !trusted) {
    return Error(Kind::kDenied, Text("'", Printable(path),
                                     "' must be a regular file of root or of this user that "
                                     "nobody else may write"));
  }
  cell::PlannedMount mount;
  mount.source = TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", pin.get())));
  mount.target = target;
  mount.device = status.st_dev;
  mount.inode = status.st_ino;
  plan->mounts.push_back(std::move(mount));
  return pin;
}

std::vector<std::string> InitCommand(const cell::CellPlan& plan) {
  std::vector<std::string> command = {kInitMount, Text("--gate-path=", kGateSocketInside),
                                      Text("--nofile=", plan.limits.nofile)};
  if (cell::ListenerCount(plan) > 0) command.emplace_back("--listen");
  if (plan.tunnels) command.emplace_back("--tunnels");
  if (plan.terminal) command.emplace_back("--terminal");
  return command;
}

Error Died(std::string_view when) {
  return Error(Kind::kViolation,
               Text("the container's first process ended before it stood at the gate ", when))
      .Coded("cell_mismatch");
}

}  // namespace

Result<std::unique_ptr<RunningCell>> DockerCell::Make(std::shared_ptr<EngineClient> client,
                                                      const ImageFacts& image, cell::CellPlan plan,
                                                      const CellPlaces& places,
                                                      const Terms& terms) {
  auto init = PlanProgram(places.init_program, kInitMount, &plan).With("taskcell-init");
  if (!init.ok()) return std::move(init).error().Coded("workspace_failed");
  GateDirectory gate_directory = TRY(GateDirectory::Make(places.run_directory));
  plan.mounts.push_back(gate_directory.mount());
  Status sound = cell::CheckPlan(plan);
  if (!sound.ok()) return std::move(sound).error().Coded("container_refused");

  // From here on the destructor undoes what was done.
  std::unique_ptr<DockerCell> made(
      new DockerCell(std::move(client), std::move(plan), std::move(gate_directory)));
  made->pins_.push_back(std::move(init).value());
  made->client_->CancelOn(terms.cancel_fd);
  Status stands = made->StandAtGate(image, terms);
  made->client_->CancelOn(-1);  // its removal is not to be given up
  if (stands.ok()) return std::unique_ptr<RunningCell>(std::move(made));
  Error error = std::move(stands).error();
  for (const std::string& warning : made->warnings_)
    error.text += Text("; the engine warned: ", warning);
  Status removed = error.code == "stopped" ? made->RemoveIfAnswered() : made->Remove();
  if (!removed.ok()) error.text += Text("; and left behind: ", removed.error().text);
  return error;
}

Status DockerCell::StandAtGate(const ImageFacts& image, const Terms& terms) {
  TRY(Create(image, terms));
  if (terms.check_reported) TRY(CheckReported());
  TRY(client_->Start(container_));
  const Clock::time_point deadline = Clock::now() + kGateTimeout;
  TRY(FindFirstProcess(deadline));
  gate_ = TRY(gate_directory_.AcceptFrom(host_pid_, pidfd_.get(), deadline, terms.cancel_fd));
  return Ok();
}

DockerCell::~DockerCell() {
  (void)Remove();  // ignoring: the engine removes it by itself, and the sweep what is left
}

Status DockerCell::Create(const ImageFacts& image, const Terms& terms) {
  container_ = ContainerName(plan_.run_id);
  maybe_not_ours_ = true;
  auto created =
      client_->Create({image.id, InitCommand(plan_), image.environment_names, plan_, terms.podman});
  if (terms.may_exist != nullptr) *terms.may_exist = true;
  if (!created.ok()) {
    Error error = std::move(created).error();
    if (error.code.empty()) error.code = "container_refused";
    // Where the answer got lost, was not waited for or makes no sense there may be a container. A
    // clear refusal means there is none of ours: one of that name would be another's.
    bool unclear = error.code == "docker_unreachable" || error.code == "stopped" ||
                   error.kind == Kind::kViolation;
    if (unclear) return error;
    container_.clear();
    if (terms.may_exist != nullptr) *terms.may_exist = false;
    return error;
  }
  container_ = created->id;
  maybe_not_ours_ = false;
  warnings_ = created->warnings;
  return Ok();
}

Status DockerCell::CheckReported() {
  const ReportedLimits reported = TRY(client_->InspectLimits(container_));
  const cell::Limits& limits = plan_.limits;
  std::string differences;
  auto compare = [&](std::string_view name, std::optional<uint64_t> found, uint64_t asked) {
    if (found == asked) return;
    differences +=
        Text(differences.empty() ? "" : "; ", name, ": asked ", asked, ", the engine says ",
             !found.has_value()             ? std::string("nothing")
             : *found == kReportedUnlimited ? std::string("no limit")
                                            : std::to_string(*found));
  };
  compare("memory", reported.memory_bytes, limits.memory_bytes);
  compare("memory and swap", reported.memory_and_swap_bytes, limits.memory_bytes);
  compare("pids", reported.pids, limits.pids);
  if (differences.empty()) return Ok();
  return Error(Kind::kUnsupported,
               Text("the engine made the container with other limits than asked, so it was not "
                    "started (",
                    differences, ")"))
      .Coded("resource_limits_unenforced");
}

Status DockerCell::FindFirstProcess(Clock::time_point deadline) {
  auto state = client_->Inspect(container_);
  if (!state.ok() && state.error().err == ENOENT) return Died("and the engine removed it");
  if (!state.ok()) return std::move(state).error();
  if (!state->running || state->pid <= 0) {
    return Died(Text("(state ", state->status, ", exit ", state->exit_code, ") ", state->error));
  }
  host_pid_ = state->pid;
  auto pidfd = sys::OpenPidfd(host_pid_);
  if (!pidfd.ok() && pidfd.error().err == ESRCH) return NotHere(deadline);
  pidfd_ = TRY(std::move(pidfd));
  return Ok();
}

// There is no process of that id here: it runs on another kernel, or it ended, which an engine is
// told by others and may learn of only later.
Error DockerCell::NotHere(Clock::time_point deadline) {
  while (true) {
    auto again = client_->Inspect(container_);
    if (!again.ok() && again.error().err != ENOENT) return std::move(again).error();
    if (!again.ok() || !again->running || again->pid != host_pid_) return Died("and is gone");
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(kLookAgain);
  }
  return Error(Kind::kUnsupported,
               Text("the engine can't share a socket with this host: the process ", host_pid_,
                    " it says it runs is not there; an engine in a virtual machine, on another "
                    "host or with a kernel of its own cannot be used (",
                    client_->endpoint().Describe(), ")"))
      .Coded("docker_unreachable");
}

Result<std::optional<ReportedLimits>> DockerCell::Reported() {
  return std::optional(TRY(client_->InspectLimits(container_)));
}

Result<cell::OutsideAttestation> DockerCell::Observe() { return cgroup::Observe(host_pid_); }

Result<cgroup::Events> DockerCell::ReadEvents() { return cgroup::ReadEventsOf(TRY(Observe())); }

Status DockerCell::Kill() {
  if (container_.empty()) return Ok();
  if (maybe_not_ours_) return Ok();
  TRY(client_->Kill(container_));
  if (!pidfd_.valid()) return Ok();
  // The end of PID 1 is the end of every process in its pid namespace: the kernel waits for them.
  if (TRY(sys::Poll(pidfd_.get(), POLLIN, kKillTimeoutMs)) != 0) return Ok();
  return Error(Kind::kSystem, Text("process ", host_pid_, " of container ", container_,
                                   " did not end within ", kKillTimeoutMs, " ms of being killed"))
      .Coded("cleanup_failed");
}

// For a task that is to end at once: what an engine makes that does not answer now is the sweep's.
Status DockerCell::RemoveIfAnswered() {
  if (container_.empty()) return Remove();
  auto found = client_->Inspect(container_, kFarewell);
  if (found.ok() || found.error().err == ENOENT) return Remove();
  std::string name = std::exchange(container_, {});
  TRY(Remove());
  return Error(Kind::kSystem, Text("perhaps the container ", name, " (", found.error().text,
                                   "); `taskcell sweep` removes it when its time is over"))
      .Coded("cleanup_failed");
}

Status DockerCell::Remove() {
  gate_.Reset();
  if (!container_.empty() && maybe_not_ours_) {
    auto found = client_->Inspect(container_);
    if (!found.ok() && found.error().err != ENOENT)
      return std::move(found).error().Coded("cleanup_failed");
    if (found.ok() && found->run_label == plan_.run_id) {
      container_ = found->id;
    } else {
      container_.clear();
    }
    maybe_not_ours_ = false;
  }
  if (!container_.empty()) {
    Status removed = client_->Remove(container_);  // with force: it kills first
    if (!removed.ok()) return std::move(removed).error().Coded("cleanup_failed");
    container_.clear();
  }
  Status removed = gate_directory_.Remove();
  if (!removed.ok()) return std::move(removed).error().Coded("cleanup_failed");
  return Ok();
}

}  // namespace taskcell::probe
