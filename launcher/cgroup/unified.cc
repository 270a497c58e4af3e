#include "launcher/cgroup/unified.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/sys/file.h"

namespace taskcell::cgroup {
namespace {

constexpr int kEvacuationRounds = 16;  // new processes may be forked while others are moved

bool HasWord(std::string_view text, std::string_view word) {
  std::vector<std::string_view> words = Words(text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

Status CheckType(int cgroup_fd) {
  std::optional<std::string> type = TRY(ReadRecord(cgroup_fd, "cgroup.type"));
  if (!type || *type == "domain") return Ok();  // the root cgroup has no such file
  return Error(Kind::kUnsupported,
               Text("cgroup.type is '", Printable(*type),
                    "', which cannot limit memory: thread-wise controllers were turned on while it "
                    "held processes; writing '-pids -cpu -cpuset' to its cgroup.subtree_control "
                    "undoes that"));
}

Status Evacuate(int cgroup_fd) {
  Status made = sys::MakeDirectory(cgroup_fd, kSupervisor, 0755);
  if (!made.ok() && made.error().err != EEXIST) return made;
  for (int round = 0; round < kEvacuationRounds; ++round) {
    std::string processes = TRY(ReadControl(cgroup_fd, "cgroup.procs"));
    if (processes.empty()) return Ok();
    for (std::string_view pid : Words(processes)) {
      Status moved = sys::WriteControl(cgroup_fd, Text(kSupervisor, "/cgroup.procs"), pid);
      if (moved.ok() || moved.error().err == ESRCH) continue;
      return std::move(moved).With(
          Text("move process ", pid, " out of a cgroup that must hand its controllers on"));
    }
  }
  return Error(Kind::kSystem,
               Text("processes keep appearing in a cgroup that must be empty to hand "
                    "its controllers on (",
                    kEvacuationRounds, " rounds)"));
}

}  // namespace

Status EnableControllers(int cgroup_fd, const std::vector<Controller>& wanted, bool may_evacuate) {
  TRY(CheckType(cgroup_fd));
  std::string present = TRY(ReadControl(cgroup_fd, "cgroup.controllers"));
  std::string enabled = TRY(ReadControl(cgroup_fd, "cgroup.subtree_control"));
  std::string missing;
  for (Controller controller : wanted) {
    std::string_view name = Name(controller);
    if (!HasWord(present, name)) {
      return Error(Kind::kUnsupported, Text("cgroup.controllers offers '", Printable(present),
                                            "', there is no ", name));
    }
    if (!HasWord(enabled, name)) missing += Text(missing.empty() ? "+" : " +", name);
  }
  if (missing.empty()) return Ok();
  // Asked first, since the kernel would turn pids and cpu on in a populated cgroup and make it
  // threaded. The root cgroup, which has no cgroup.type, may hold processes.
  if (may_evacuate && sys::StatAt(cgroup_fd, "cgroup.type").ok()) TRY(Evacuate(cgroup_fd));
  return sys::WriteControl(cgroup_fd, "cgroup.subtree_control", missing);
}

}  // namespace taskcell::cgroup
