#include "launcher/host/descendants.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/other_process.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::host {
namespace {

constexpr std::size_t kMaxProcesses = 1U << 22U;  // the kernel's own limit on pids
constexpr std::size_t kMaxStatBytes = 4096;

// The parent in a line of /proc/PID/stat: the second field after the name, which may hold anything
// but ends at the last parenthesis.
std::optional<pid_t> ParentIn(std::string_view stat) {
  std::size_t end = stat.rfind(')');
  if (end == std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> fields = Words(stat.substr(end + 1));
  if (fields.size() < 2) return std::nullopt;
  std::optional<uint64_t> parent = ParseUnsigned(fields[1]);
  if (!parent) return std::nullopt;
  return static_cast<pid_t>(*parent);
}

Result<std::vector<Parentage>> ListProcesses() {
  std::vector<Parentage> processes;
  sys::Proc proc = TRY(sys::Proc::Open());
  for (const sys::DirectoryEntry& entry : TRY(sys::ListDirectory(proc.fd(), kMaxProcesses))) {
    std::optional<uint64_t> pid = ParseUnsigned(entry.name);
    if (!pid) continue;
    Result<std::string> stat = sys::ReadFile(proc.fd(), entry.name + "/stat", kMaxStatBytes);
    if (!stat.ok()) continue;  // it ended meanwhile
    std::optional<pid_t> parent = ParentIn(stat.value());
    if (parent) processes.push_back({static_cast<pid_t>(*pid), *parent});
  }
  return processes;
}

// By a descriptor, so that a number which was given away again meanwhile is not hit.
void Kill(pid_t pid) {
  Result<UniqueFd> process = sys::OpenPidfd(pid);
  if (!process.ok()) return;
  (void)sys::SignalPidfd(process->get(), SIGKILL);  // ignoring: who is left is looked for again
}

}  // namespace

std::vector<pid_t> DescendantsOf(pid_t ancestor, const std::vector<Parentage>& processes) {
  std::vector<pid_t> found = {ancestor};
  for (std::size_t at = 0; at < found.size(); ++at) {
    const pid_t parent = found[at];
    for (const Parentage& each : processes) {
      if (each.parent != parent) continue;
      if (std::find(found.begin(), found.end(), each.pid) == found.end()) found.push_back(each.pid);
    }
  }
  found.erase(found.begin());
  return found;
}

Status KillDescendants() {
  for (pid_t pid : DescendantsOf(sys::OwnPid(), TRY(ListProcesses()))) Kill(pid);
  return Ok();
}

Status EndDescendants(int timeout_ms) {
  constexpr uint64_t kMicrosecondsPerMs = 1000;
  constexpr int kPauseMs = 10;
  UniqueFd signals = TRY(sys::MakeChildSignalFd());
  const uint64_t end = sys::MonotonicUs() + static_cast<uint64_t>(timeout_ms) * kMicrosecondsPerMs;
  while (sys::MonotonicUs() < end) {
    TRY(KillDescendants());
    bool none_left = false;
    while (TRY(sys::NextChildEvent(none_left)).has_value()) {
    }
    if (none_left) return Ok();
    TRY(sys::Poll(signals.get(), POLLIN, kPauseMs));
    sys::DrainSignals(signals.get());
  }
  return Error(Kind::kSystem, "processes of the job are left that do not end", ETIMEDOUT);
}

}  // namespace taskcell::host
