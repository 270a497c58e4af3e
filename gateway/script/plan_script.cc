#include "gateway/script/plan_script.h"

#include <fcntl.h>

#include <utility>

#include "gateway/config/environment.h"
#include "gateway/task/plan_task.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr char kDirectory[] = "script";
constexpr char kScriptMount[] = "/workspace";
constexpr char kTmp[] = "/tmp";
constexpr uint64_t kSetupAllowanceMs = 60000;
constexpr std::string_view kCellPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Error StoreFault(Error error) {
  return std::move(error).With("Failed to create the script directory").Coded("workspace_failed");
}

// The cell's user is another: it may read both, and nobody else of the host comes this far.
Result<UniqueFd> WriteScript(int run_fd, const ScriptRequest& request) {
  constexpr mode_t kDirectoryMode = 0755;
  constexpr mode_t kFileMode = 0644;
  TRY(sys::MakeDirectory(run_fd, kDirectory, kDirectoryMode));
  UniqueFd directory = TRY(
      sys::OpenAt2(run_fd, kDirectory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, sys::kResolveBeneath));
  TRY(sys::ChangeMode(directory.get(), kDirectoryMode));
  UniqueFd file =
      TRY(sys::OpenAt2(directory.get(), std::string(ScriptFile(request.language)),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, sys::kResolveBeneath, kFileMode));
  TRY(sys::ChangeMode(file.get(), kFileMode));
  TRY(sys::WriteAll(file.get(), request.code));
  return directory;
}

cell::Job ScriptJob(const ScriptRequest& request, std::string script) {
  cell::Job job;
  job.argv = {std::string(Interpreter(request.language)), std::move(script)};
  job.stdio = cell::JobStdio::kRelay;
  job.input = request.input;
  job.timeout_ms = request.timeout_ms;
  return job;
}

}  // namespace

Result<StoredScript> StoreScript(const Home& home, const std::string& run_id,
                                 const ScriptRequest& request) {
  Result<RunDirectory> run = RunDirectory::Make(home, run_id);
  if (!run.ok()) return std::move(run).error();
  Result<UniqueFd> directory = WriteScript(run->fd(), request);
  if (!directory.ok()) return StoreFault(std::move(directory).error());
  std::string path = Text(run->path(), "/", kDirectory);
  return StoredScript{std::move(run).value(), std::move(directory).value(), std::move(path)};
}

Result<cell::CellPlan> PlanScriptCell(const Home& home, const std::string& run_id,
                                      const ScriptRequest& request, const ScriptSettings& settings,
                                      cell::Engine engine, const probe::CellIds& ids,
                                      const StoredScript& script) {
  constexpr uint32_t kTmpMode = 01777;
  cell::CellPlan plan = EmptyPlan(home, "script", run_id, request.timeout_ms + kSetupAllowanceMs);
  plan.uid = ids.uid;
  plan.gid = ids.gid;
  plan.network = cell::NetworkMode::kNone;
  plan.working_directory = kTmp;
  PlanRoot(engine, settings.sandbox.image, settings.root, plan);
  plan.limits.memory_bytes = settings.sandbox.memory_bytes;
  plan.limits.pids = settings.sandbox.pids;
  plan.limits.cpu_millis = settings.sandbox.cpu_millis;
  plan.limits.cpu_may_be_missing = settings.sandbox.cpu_may_be_missing;
  plan.tmpfs.push_back({kTmp, settings.sandbox.tmp_bytes, kTmpMode, false});
  plan.mounts.push_back(MountOf(script.path, kScriptMount, cell::EntryKind::kDirectory,
                                TRY(sys::Stat(script.directory.get()))));
  return plan;
}

bool HasInterpreter(const NativeRoot& root, ScriptLanguage language) {
  for (std::string_view directory : Split(kCellPath, ':'))
    if (WhyNoProgram(root, Text(directory, "/", Interpreter(language))).empty()) return true;
  return false;
}

cell::Job PlanScriptJob(const ScriptRequest& request) {
  cell::Job job = ScriptJob(request, Text(kScriptMount, "/", ScriptFile(request.language)));
  job.working_directory = kTmp;
  job.environment = {Text("PATH=", kCellPath), "HOME=/tmp", "LANG=C.UTF-8", "PYTHONUNBUFFERED=1"};
  return job;
}

cell::Job PlanHostScriptJob(const ScriptRequest& request, const std::string& script,
                            const Environment& environment) {
  cell::Job job = ScriptJob(request, script);
  for (std::string_view name : {"PATH", "HOME", "LANG"}) {
    const std::string_view value = Lookup(environment, name);
    if (!value.empty()) job.environment.push_back(Text(name, "=", value));
  }
  job.environment.emplace_back("PYTHONUNBUFFERED=1");
  return job;
}

}  // namespace taskcell::gateway
