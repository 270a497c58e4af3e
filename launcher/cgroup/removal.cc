#include "launcher/cgroup/removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/name.h"
#include "launcher/sys/file.h"
#include "launcher/sys/other_process.h"
#include "launcher/sys/socket.h"

namespace taskcell::cgroup {
namespace {

constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxEntries = 4096;  // in one cgroup directory, its files included
constexpr int kKillRounds = 64;            // a fork bomb forks while its members are killed
constexpr int kLongestPauseMs = 20;

Result<bool> Lists(int cgroup_fd, std::string_view pid) {
  std::string processes = TRY(ReadControl(cgroup_fd, "cgroup.procs"));
  std::vector<std::string_view> listed = Words(processes);
  return std::find(listed.begin(), listed.end(), pid) != listed.end();
}

// The pid may be another process's by now, so it counts only while the cgroup still lists it once
// the pidfd is held.
Status KillListed(int cgroup_fd, std::string_view pid) {
  std::optional<uint64_t> number = ParseUnsigned(pid);
  if (!number || *number == 0) return Ok();  // 0: a process of another pid namespace
  Result<UniqueFd> pidfd = sys::OpenPidfd(static_cast<pid_t>(*number));
  if (!pidfd.ok()) return pidfd.error().err == ESRCH ? Ok() : std::move(pidfd).error();
  if (!TRY(Lists(cgroup_fd, pid))) return Ok();
  Status sent = sys::SignalPidfd(pidfd.value().get(), SIGKILL);
  return sent.ok() || sent.error().err == ESRCH ? Ok() : std::move(sent);
}

Result<std::vector<std::string>> Children(int cgroup_fd) {
  std::vector<std::string> children;
  for (sys::DirectoryEntry& entry : TRY(sys::ListDirectory(cgroup_fd, kMaxEntries))) {
    if (entry.type == DT_DIR) children.push_back(std::move(entry.name));
  }
  return children;
}

Status KillTree(int cgroup_fd, int depth) {
  for (int round = 0; round < kKillRounds; ++round) {
    std::string processes = TRY(ReadControl(cgroup_fd, "cgroup.procs"));
    if (processes.empty()) break;
    for (std::string_view pid : Words(processes)) TRY(KillListed(cgroup_fd, pid));
  }
  if (depth == kMaxDepth) return Ok();
  for (const std::string& child : TRY(Children(cgroup_fd))) {
    UniqueFd fd = TRY(OpenCgroup(cgroup_fd, child));
    TRY(KillTree(fd.get(), depth + 1));
  }
  return Ok();
}

bool IsGone(const Error& error) { return error.err == ENOENT || error.err == ENODEV; }

// One try, from the leaves up. EBUSY: processes are still there.
Status RemoveOnce(int parent_fd, const std::string& name, int depth) {
  Status removed = sys::RemoveDirectory(parent_fd, name);
  if (removed.ok() || IsGone(removed.error())) return Ok();
  if (removed.error().err != EBUSY || depth == kMaxDepth) return removed;
  Result<UniqueFd> fd = OpenCgroup(parent_fd, name);
  if (!fd.ok()) return IsGone(fd.error()) ? Ok() : std::move(fd).error();
  Result<std::vector<std::string>> children = Children(fd.value().get());
  if (!children.ok()) return IsGone(children.error()) ? Ok() : std::move(children).error();
  if (children.value().empty()) return removed;
  for (const std::string& child : children.value())
    TRY(RemoveOnce(fd.value().get(), child, depth + 1));
  return sys::RemoveDirectory(parent_fd, name);
}

void SweepOne(int place_fd, const std::string& name) {
  Result<UniqueFd> run = OpenCgroup(place_fd, name);
  if (!run.ok()) return;
  if (!sys::LockNamed(run.value().get(), LOCK_EX, place_fd, name)) return;  // its owner lives
  (void)RemoveOnce(place_fd, name, 0);  // ignoring: processes are left, the next run tries again
}

}  // namespace

Status KillAll(int cgroup_fd) {
  if (sys::WriteControl(cgroup_fd, "cgroup.kill", "1").ok()) return Ok();
  return KillTree(cgroup_fd, 0);
}

Status RemoveCgroup(int parent_fd, const std::string& name, int timeout_ms) {
  int waited_ms = 0;
  for (int pause_ms = 1;; pause_ms = std::min(pause_ms * 2, kLongestPauseMs)) {
    Status removed = RemoveOnce(parent_fd, name, 0);
    if (removed.ok() || removed.error().err != EBUSY || waited_ms >= timeout_ms) return removed;
    Result<UniqueFd> fd = OpenCgroup(parent_fd, name);
    if (!fd.ok()) return IsGone(fd.error()) ? Ok() : std::move(fd).error();
    TRY(KillAll(fd.value().get()));
    TRY(sys::Poll(-1, 0, pause_ms));
    waited_ms += pause_ms;
  }
}

void SweepStale(int place_fd) {
  // A cgroup directory has two links and one more for each child: mostly there is nothing to list.
  Result<struct stat> info = sys::Stat(place_fd);
  if (info.ok() && info->st_nlink == 2) return;
  Result<std::vector<std::string>> children = Children(place_fd);
  if (!children.ok()) return;
  for (const std::string& name : children.value()) {
    if (IsRunName(name)) SweepOne(place_fd, name);
  }
}

}  // namespace taskcell::cgroup
