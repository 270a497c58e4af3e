#include "gateway/task/plan_task.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "gateway/runtimes/plan_job.h"
#include "gateway/task/cancel.h"
#include "gateway/task/prompt.h"
#include "gateway/task/task_record.h"
#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/mounts/bounded_snapshot.h"
#include "launcher/mounts/input.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kUnmountable = "agent_dir_unmountable";
constexpr std::string_view kWorkspaceFailed = "workspace_failed";

Error Coded(Error error, std::string_view intent, std::string_view code) {
  if (!error.code.empty()) return error;
  return std::move(error).With(intent).Coded(code);
}

// Nobody but root and this user may be able to exchange the directory for another.
Status CheckWayTo(const Home& home, const Agent& agent) {
  std::string path = Text(home.path, "/agents/", agent.directory_name);
  mounts::PinnedPath pinned = TRY(mounts::PinTrustedPath(path, mounts::TrustIn(::geteuid())));
  struct stat named = TRY(sys::Stat(pinned.fd.get()));
  struct stat found = TRY(sys::Stat(agent.directory.get()));
  if (named.st_dev == found.st_dev && named.st_ino == found.st_ino) return Ok();
  return Error(Kind::kViolation, Text("'", Printable(path), "' was exchanged since it was read"));
}

Result<mounts::StoredSnapshot> TakeSnapshot(const Home& home, const Agent& agent,
                                            const RunDirectory& run, mounts::Subtree unsafe_subtree,
                                            const Surroundings& surroundings) {
  TRY(CheckWayTo(home, agent));
  mounts::SnapshotTaker own(surroundings.programs.launch);
  mounts::SnapshotTaker& taker = surroundings.snapshots == nullptr ? own : *surroundings.snapshots;
  return taker.Take(run.snapshots(), agent.directory.get(), unsafe_subtree,
                    {mounts::kSnapshotTimeLimit, surroundings.cancel_fd});
}

// Where there is no room, it is not the agent directory that is at fault.
Error SnapshotFault(Error error) {
  if (!error.code.empty() && error.code != kUnmountable) return error;
  const bool too_large_to_write = error.err == EFBIG && error.kind == Kind::kSystem;
  if (error.err == ENOSPC || error.err == EDQUOT || error.err == EROFS || too_large_to_write)
    return Coded(std::move(error), "the snapshot of the agent directory could not be written",
                 kWorkspaceFailed);
  return std::move(error).With("the agent directory cannot be mounted").Coded(kUnmountable);
}

Status PlanAgentMount(PlannedTask& task) {
  task.plan.mounts.push_back(MountOf(task.snapshot.path(), "/agent", cell::EntryKind::kDirectory,
                                     TRY(sys::Stat(task.snapshot.fd()))));
  return Ok();
}

// What was asked for by name is copied as a snapshot is, and lasts as long as the run.
Status PlanInput(const std::vector<std::string>& paths, PlannedTask& task) {
  constexpr char kName[] = "input";
  if (paths.empty()) return Ok();
  task.input = TRY(OpenPrivate(task.directory.fd(), kName, true));
  Status copied = mounts::CopyInputs(paths, task.input.get());
  if (!copied.ok()) return Coded(std::move(copied).error(), "the inputs", kWorkspaceFailed);
  task.plan.mounts.push_back(MountOf(Text(task.directory.path(), "/", kName), "/input",
                                     cell::EntryKind::kDirectory,
                                     TRY(sys::Stat(task.input.get()))));
  return Ok();
}

// It is the whole program of the one, and answers the hook of the other.
bool NeedsLoop(Runtime runtime) {
  return runtime == Runtime::kOpenAiCompat || runtime == Runtime::kAntigravity;
}

// The loop is our own program: it comes into the cell like taskcell-init.
Status PlanLoop(const Programs& programs, PlannedTask& task) {
  Result<UniqueFd> loop = sys::OpenAt2(AT_FDCWD, programs.loop, O_PATH, RESOLVE_NO_SYMLINKS);
  if (!loop.ok())
    return Coded(std::move(loop).error(), "taskcell-loop cannot be found", kWorkspaceFailed);
  struct stat info = TRY(sys::Stat(loop->get()));
  task.plan.mounts.push_back(MountOf(programs.loop, kLoopPath, cell::EntryKind::kFile, info));
  task.loop_pin = std::move(loop).value();
  return Ok();
}

}  // namespace

std::vector<std::string> PlannedTask::Warnings() const {
  std::vector<std::string> warnings = snapshot.content().warnings;
  warnings.insert(warnings.end(), user.warnings.begin(), user.warnings.end());
  return warnings;
}

cell::PlannedMount MountOf(const std::string& source, std::string_view target, cell::EntryKind kind,
                           const struct stat& info) {
  cell::PlannedMount mount;
  mount.source = source;
  mount.target = target;
  mount.kind = kind;
  mount.device = info.st_dev;
  mount.inode = info.st_ino;
  return mount;
}

void PlanLimits(const SandboxSettings& settings, cell::CellPlan& plan) {
  constexpr uint32_t kTmpMode = 01777;
  constexpr uint32_t kWorkspaceMode = 0700;
  plan.limits.memory_bytes = settings.memory_bytes;
  plan.limits.pids = settings.pids;
  plan.limits.cpu_millis = settings.cpu_millis;
  plan.limits.cpu_may_be_missing = settings.cpu_may_be_missing;
  // The programs unpack helpers there, so both may hold executables.
  plan.tmpfs.push_back({"/tmp", settings.tmp_bytes, kTmpMode, true});
  plan.tmpfs.push_back(
      {std::string(kJobDirectory), settings.workspace_bytes, kWorkspaceMode, true});
}

cell::CellPlan EmptyPlan(const Home& home, const std::string& agent, const std::string& run_id,
                         uint64_t timeout_ms) {
  cell::CellPlan plan;
  plan.run_id = run_id;
  plan.agent = agent;
  plan.home_label = home.label;
  plan.deadline_unix_ms = UnixMilliseconds() + static_cast<int64_t>(timeout_ms);
  plan.network = cell::NetworkMode::kProvider;
  plan.working_directory = kJobDirectory;
  return plan;
}

Result<PlannedTask> PlanTask(const Home& home, const Agent& agent, const Admission& admission,
                             const Surroundings& surroundings, const TaskRequest& request) {
  const std::string run_id = TRY(MakeRunId());
  probe::CellIds ids = TRY(admission.engine->ChooseIds(run_id));
  if (IsCancelled(surroundings)) return Stopped();  // before anything is made
  RunDirectory directory = TRY(RunDirectory::Make(home, run_id));
  Result<mounts::StoredSnapshot> snapshot =
      TakeSnapshot(home, agent, directory, admission.own_settings.unsafe_subtree, surroundings);
  if (!snapshot.ok()) return SnapshotFault(std::move(snapshot).error());
  PlannedTask task{
      std::move(directory), std::move(snapshot).value(), {}, {}, {}, std::move(ids), {}, {}};
  task.plan = EmptyPlan(home, agent.config.name, run_id, agent.config.timeout_ms);
  task.plan.uid = task.ids.uid;
  task.plan.gid = task.ids.gid;
  if (admission.own_settings.open_egress) task.plan.network = cell::NetworkMode::kOpen;
  task.plan.tunnels = !admission.tunnel_hosts.empty();
  PlanRoot(admission.engine->kind(), admission.settings.image, admission.root, task.plan);
  PlanLimits(admission.settings, task.plan);
  TRY(PlanAgentMount(task));
  task.user = TRY(PlanUserEntries(task.directory, admission.root, task.plan));
  TRY(PlanInput(request.inputs, task));
  if (NeedsLoop(admission.runtime)) TRY(PlanLoop(surroundings.programs, task));
  std::vector<std::string> none;  // a snapshot holds plain files alone
  mounts::FileReader here;
  task.prompt = WholePrompt(TRY(ReadSystemPrompt(here, task.snapshot.fd(), none)), request.prompt);
  return task;
}

}  // namespace taskcell::gateway
