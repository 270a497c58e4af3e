#include "gateway/sweep/sweep.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include "gateway/ledger/audit.h"
#include "gateway/ledger/interrupt.h"
#include "gateway/ledger/ledger.h"
#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMaxRunDirectories = 100000;
constexpr std::size_t kMaxFormerEngines = 8;  // that are asked in one sweep
constexpr int64_t kMillis = 1000;
constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

bool IsMadeOf(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

constexpr std::string_view kNativeEngine = "native";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kLowercase = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kAlphanumeric =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool MakesSense(const probe::ListedContainer& container) {
  constexpr std::size_t kDigits = 64;
  return container.id.size() == kDigits && IsMadeOf(container.id, kHex) &&
         IsMadeOf(container.state, kLowercase) && IsMadeOf(container.run_label, kAlphanumeric);
}

// Podman's "stopped" is what Docker calls exited.
bool HasEnded(const probe::ListedContainer& container) {
  return container.state == "exited" || container.state == "dead" || container.state == "stopped";
}

// Without a deadline that can be read it never is.
bool IsOverdue(const probe::ListedContainer& container, int64_t now_s) {
  std::optional<uint64_t> deadline = ParseUnsigned(container.deadline_label);
  return deadline.has_value() && now_s > kSweepGraceS &&
         *deadline < static_cast<uint64_t>(now_s - kSweepGraceS);
}

bool IsOverdue(const RunRow& run, int64_t now_s) {
  return run.deadline_ms / kMillis < now_s - kSweepGraceS;
}

// The socket in what an engine calls itself ("docker at unix:///run/docker.sock (from ...)"); empty
// where there is none.
std::string SocketOf(std::string_view engine) {
  constexpr std::string_view kScheme = " at unix://";
  const std::size_t scheme = engine.find(kScheme);
  if (scheme == std::string_view::npos) return "";
  const std::string_view rest = engine.substr(scheme + kScheme.size());
  return std::string(rest.substr(0, rest.find(" (from ")));
}

// The run id in a PartName; empty for any other name.
std::string RunOfPart(std::string_view name) {
  constexpr std::string_view kEnd = ".part";
  if (!name.starts_with('.') || !name.ends_with(kEnd) || name.size() <= kEnd.size() + 1) return "";
  const std::string_view run = name.substr(1, name.size() - 1 - kEnd.size());
  return IsRunId(run) ? std::string(run) : "";
}

class Sweeper {
 public:
  Sweeper(const Home& home, UniqueFd sandbox, std::optional<Ledger> ledger,
          const SweepOptions& options)
      : home_(home), sandbox_(std::move(sandbox)), ledger_(std::move(ledger)), options_(options) {}

  Status Tasks() {
    if (!ledger_.has_value()) return Ok();
    const int64_t now_ms = options_.now_s * kMillis;
    if (!options_.dry_run) {
      report_.interrupted = TRY(EndInterrupted(*ledger_, home_.fd.get(), now_ms));
      return Ok();
    }
    for (const TaskRow& task : TRY(ledger_->Interrupt(now_ms, true)))
      report_.interrupted.push_back(task.id);
    return Ok();
  }

  // Afterwards the run of every container that stays is in use. False: nothing may be removed.
  Result<bool> Containers(const EngineContainers& engine, bool is_former = false) {
    Result<std::vector<probe::ListedContainer>> listed = engine.list(home_.label);
    if (!listed.ok()) {
      report_.notes.push_back(listed.error().text);
      const bool answered = listed.error().kind == Kind::kViolation;
      // Of interest only where something waits to be removed; a former engine may be gone for good.
      if (answered || (!is_former && !TRY(RunDirectories()).empty()))
        Fail(answered ? "list_invalid" : "docker_unreachable");
      return false;
    }
    if (!std::all_of(listed->begin(), listed->end(), MakesSense)) {
      report_.notes.emplace_back("the engine's list of containers makes no sense");
      Fail("list_invalid");
      return false;
    }
    for (const probe::ListedContainer& container : listed.value())
      TRY(Container(engine, container));
    return true;
  }

  // The runs whose end the ledger does not have: of those that no engine shows any more it is
  // entered. What an engine made that can't be listed is in use.
  Status Runs(const EngineContainers* configured, const OpenEngine& former) {
    if (!ledger_.has_value()) return Ok();
    std::map<std::string, bool> listed;  // by socket
    if (configured != nullptr) listed[configured->socket_path] = true;
    for (const RunRow& run : TRY(ledger_->UnendedRuns())) {
      if (run.engine != kNativeEngine && !TRY(IsListed(SocketOf(run.engine), former, listed))) {
        in_use_.insert(run.id);
      } else if (!options_.dry_run && !in_use_.contains(run.id) && IsOverdue(run, options_.now_s) &&
                 !TRY(IsHeld(run.id))) {
        TRY(run.task.empty() ? ledger_->ForgetScriptRun(run.id)
                             : ledger_->FinishRun(run.id, options_.now_s * kMillis));
      }
    }
    return Ok();
  }

  Status Directories() {
    for (const std::string& name : TRY(RunDirectories())) {
      if (in_use_.contains(name) || !TRY(IsAbandoned(name))) continue;
      Status removed = options_.dry_run ? Ok() : mounts::RemoveTree(runs_.get(), name);
      if (removed.ok()) {
        report_.directories.push_back(name);
      } else {
        report_.notes.push_back(Text("run directory ", name, ": ", removed.error().text));
        Fail("directory_remove_failed");
      }
    }
    return Ok();
  }

  // Exports that were not whole when their process ended.
  Status Parts() {
    Result<UniqueFd> opened =
        sys::OpenAt2(home_.fd.get(), "exports", kOpenDirectory, sys::kResolveBeneath);
    if (!opened.ok() && opened.error().err == ENOENT) return Ok();
    const UniqueFd exports = TRY(std::move(opened));
    for (const sys::DirectoryEntry& entry :
         TRY(sys::ListDirectory(exports.get(), kMaxRunDirectories))) {
      const std::string run = RunOfPart(entry.name);
      if (run.empty() || TRY(IsHeld(run))) continue;
      const struct stat info = TRY(sys::StatAt(exports.get(), entry.name));
      if (info.st_mtim.tv_sec >= options_.now_s - kSweepGraceS) continue;
      Status removed = options_.dry_run ? Ok() : mounts::RemoveTree(exports.get(), entry.name);
      if (removed.ok()) {
        report_.expired.push_back(Text("half an export of run ", run));
      } else {
        report_.notes.push_back(Text("exports/", entry.name, ": ", removed.error().text));
        Fail("directory_remove_failed");
      }
    }
    return Ok();
  }

  SweepReport Finish() {
    for (const auto& [reason, count] : report_.failures) {
      if (options_.dry_run) break;
      Status written = AppendAudit(home_.fd.get(), {"task_sandbox_cleanup_failed",
                                                    "system",
                                                    "warning",
                                                    {{"reason", reason}, {"count", count}}});
      if (!written.ok()) report_.notes.push_back(written.error().text);
    }
    return std::move(report_);
  }

 private:
  // Whether it is known what is left at the engine of that socket.
  Result<bool> IsListed(const std::string& socket, const OpenEngine& former,
                        std::map<std::string, bool>& listed) {
    if (auto known = listed.find(socket); known != listed.end()) return known->second;
    const bool can_ask = !socket.empty() && former && listed.size() < kMaxFormerEngines;
    const bool answered = can_ask && TRY(Containers(former(socket), true));
    if (!answered)
      report_.notes.push_back(Text("the engine at ", socket.empty() ? "an unknown place" : socket,
                                   " made runs of this home and cannot be listed now, so their "
                                   "run directories stay"));
    return listed[socket] = answered;
  }

  void Fail(std::string_view reason) { ++report_.failures[std::string(reason)]; }

  Status Container(const EngineContainers& engine, const probe::ListedContainer& container) {
    if (!ledger_.has_value() || !TRY(ledger_->HasRun(container.run_label))) {
      report_.notes.push_back(
          Text("container ", container.id, " is labelled as a run that this home never made"));
      return Ok();
    }
    const bool is_over = HasEnded(container) || (IsOverdue(container, options_.now_s) &&
                                                 !TRY(IsHeld(container.run_label)));
    if (!is_over || report_.containers.size() == kMaxSweptContainers) {
      in_use_.insert(container.run_label);
      return Ok();
    }
    Status removed = options_.dry_run ? Ok() : engine.remove(container.id);
    if (removed.ok()) {
      report_.containers.push_back(container.id);
      return Ok();
    }
    report_.notes.push_back(removed.error().text);
    Fail("container_remove_failed");
    in_use_.insert(container.run_label);
    return Ok();
  }

  // False: there is no such directory.
  Result<bool> OpenRuns() {
    if (runs_.valid()) return true;
    if (!sandbox_.valid()) return false;
    Result<UniqueFd> runs =
        sys::OpenAt2(sandbox_.get(), "runs", kOpenDirectory, sys::kResolveBeneath);
    if (!runs.ok() && runs.error().err == ENOENT) return false;
    runs_ = TRY(std::move(runs));
    return true;
  }

  Result<std::vector<std::string>> RunDirectories() {
    std::vector<std::string> names;
    if (!TRY(OpenRuns())) return names;
    for (const sys::DirectoryEntry& entry :
         TRY(sys::ListDirectory(runs_.get(), kMaxRunDirectories)))
      if (IsRunId(entry.name)) names.push_back(entry.name);
    std::sort(names.begin(), names.end());
    return names;
  }

  // Whether the process that runs it is alive: that one ends it at its deadline by a clock which
  // nobody can set, whatever the time of day is now.
  Result<bool> IsHeld(const std::string& run) {
    if (!IsRunId(run) || !TRY(OpenRuns())) return false;
    Result<UniqueFd> directory =
        sys::OpenAt2(runs_.get(), run, kOpenDirectory, sys::kResolveBeneath);
    if (!directory.ok()) return false;
    Status locked = sys::Lock(directory->get(), LOCK_EX | LOCK_NB);
    return !locked.ok() && locked.error().err == EWOULDBLOCK;
  }

  // Old, a real directory of this user, and held by nobody.
  Result<bool> IsAbandoned(const std::string& name) {
    Result<UniqueFd> directory =
        sys::OpenAt2(runs_.get(), name, kOpenDirectory, sys::kResolveBeneath);
    if (!directory.ok()) {
      report_.notes.push_back(Text("run directory ", name, ": ", directory.error().text));
      return false;
    }
    struct stat info = TRY(sys::Stat(directory->get()));
    if (info.st_uid != ::geteuid() || info.st_mtim.tv_sec >= options_.now_s - kSweepGraceS)
      return false;
    return sys::Lock(directory->get(), LOCK_EX | LOCK_NB).ok();
  }

  const Home& home_;
  UniqueFd sandbox_;
  UniqueFd runs_;  // opened when first needed
  std::optional<Ledger> ledger_;
  SweepOptions options_;
  std::set<std::string, std::less<>> in_use_;  // run ids
  SweepReport report_;
};

}  // namespace

bool IsRunId(std::string_view name) {
  constexpr std::size_t kDigits = 32;
  return name.size() == kDigits && IsMadeOf(name, kHex);
}

Result<SweepReport> Sweep(const Home& home, const EngineContainers* engine,
                          const SweepOptions& options, const OpenEngine& former) {
  std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home.fd.get(), home.path));
  Result<UniqueFd> sandbox =
      sys::OpenAt2(home.fd.get(), "sandbox", kOpenDirectory, sys::kResolveBeneath);
  const bool has_none = !sandbox.ok() && sandbox.error().err == ENOENT;
  // A run that left nothing but perhaps its container takes the directory away with it.
  const bool never_ran = has_none && (!ledger.has_value() || TRY(ledger->UnendedRuns()).empty());
  Sweeper sweeper(home, has_none ? UniqueFd() : TRY(std::move(sandbox)), std::move(ledger),
                  options);
  TRY(sweeper.Tasks());  // of the host's too
  if (never_ran) {
    SweepReport report = sweeper.Finish();
    report.never_ran = true;
    return report;
  }
  TRY(sweeper.Parts());
  if (engine != nullptr && !TRY(sweeper.Containers(*engine))) return sweeper.Finish();
  TRY(sweeper.Runs(engine, former));
  TRY(sweeper.Directories());
  return sweeper.Finish();
}

}  // namespace taskcell::gateway
