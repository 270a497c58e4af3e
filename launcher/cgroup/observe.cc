#include "launcher/cgroup/observe.h"

#include <fcntl.h>

#include <array>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/limits.h"
#include "launcher/cgroup/name.h"
#include "launcher/sys/file.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/self.h"

namespace taskcell::cgroup {
namespace {

constexpr std::size_t kMaxStatusBytes = 64U << 10U;

// A file of a process, and nothing that is mounted over it.
Result<std::string> ReadOf(int proc_pid_fd, const std::string& name, std::size_t limit) {
  constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  UniqueFd file =
      TRY(sys::OpenAt2(proc_pid_fd, name, kFlags, sys::kResolveBeneath | RESOLVE_NO_XDEV));
  return sys::ReadAll(file.get(), limit);
}

// The four ids of a "Uid:" or "Gid:" line of /proc/<pid>/status.
Result<std::array<uint32_t, 4>> ParseIds(std::string_view status, std::string_view key) {
  for (std::string_view line : Split(status, '\n')) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() != 5 || words[0] != key) continue;
    std::array<uint32_t, 4> ids = {};
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::optional<uint64_t> id = ParseUnsigned(words[i + 1]);
      if (!id || *id > UINT32_MAX) break;
      ids[i] = static_cast<uint32_t>(*id);
      if (i + 1 == ids.size()) return ids;
    }
  }
  return Error(Kind::kViolation, Text("/proc/<pid>/status has no line '", key, "' with four ids"));
}

Result<LevelLimits> EffectiveLimits(const Location& location, Controller controller) {
  LevelLimits effective;
  UniqueFd mount = TRY(OpenMount(*location.hierarchy));
  for (const std::string& below : LevelsUpwards(location.below)) {
    Lower(effective, TRY(ReadLevel(mount.get(), below, location.hierarchy->unified, controller)));
  }
  return effective;
}

}  // namespace

std::vector<std::string> LevelsUpwards(std::string_view below) {
  std::vector<std::string> levels;
  while (!below.empty()) {
    levels.emplace_back(below);
    std::size_t slash = below.rfind('/');
    below = below.substr(0, slash == below.npos ? 0 : slash);
  }
  levels.emplace_back();
  return levels;
}

std::vector<std::string> LevelsOfCell(std::string_view below) {
  std::vector<std::string> levels = {std::string(below)};
  std::size_t slash = below.rfind('/');
  if (slash == below.npos || below.substr(slash + 1) != kCellName) return levels;
  std::string_view above = below.substr(0, slash);
  std::size_t start = above.rfind('/');
  if (IsRunName(above.substr(start == above.npos ? 0 : start + 1))) levels.emplace_back(above);
  return levels;
}

Result<std::optional<Location>> Locate(const Layout& layout,
                                       const std::vector<std::string>& cgroups,
                                       std::string_view name) {
  const Hierarchy* hierarchy = layout.Find(name);
  if (hierarchy == nullptr) return std::optional<Location>();
  for (const std::string& line : cgroups) {
    std::vector<Membership> memberships = TRY(ParseMemberships(line));
    if (memberships.size() != 1 || memberships[0].controllers != hierarchy->controllers) continue;
    std::optional<std::string> below = BelowMount(*hierarchy, memberships[0].path);
    if (!below) break;
    return std::optional<Location>({hierarchy, *std::move(below)});
  }
  return std::optional<Location>();
}

Result<cell::OutsideAttestation> ObserveIn(const Layout& layout, int proc_pid_fd, pid_t pid,
                                           bool host_has_swap,
                                           const std::vector<Controller>& more) {
  cell::OutsideAttestation seen;
  seen.host_pid = pid;
  for (std::size_t index = 0; index < cell::kNamespaces.size(); ++index) {
    // One that can't be looked at stays unknown, which no cell's differs from.
    Result<struct stat> info = sys::StatNamespace(cell::kNamespaces[index]);
    if (info.ok()) seen.host_namespaces[index] = {info->st_dev, info->st_ino};
  }
  Result<sys::SessionKeyring> keyring = sys::FindSessionKeyring();
  if (keyring.ok()) seen.host_keyring = {keyring->serial, 0, std::move(keyring->description)};
  if (!keyring.ok()) seen.host_keyring.err = keyring.error().err;
  std::string status = TRY(ReadOf(proc_pid_fd, "status", kMaxStatusBytes));
  seen.host_uids = TRY(ParseIds(status, "Uid:"));
  seen.host_gids = TRY(ParseIds(status, "Gid:"));
  std::string cgroups = TRY(ReadOf(proc_pid_fd, "cgroup", kMaxProcCgroupBytes));
  for (std::string_view line : Split(Trim(cgroups), '\n')) seen.cgroups.emplace_back(line);
  LevelLimits effective;
  std::vector<Controller> controllers(std::begin(kControllers), std::end(kControllers));
  controllers.insert(controllers.end(), more.begin(), more.end());
  for (Controller controller : controllers) {
    std::optional<Location> location = TRY(Locate(layout, seen.cgroups, NameOnV1(controller)));
    if (location) Lower(effective, TRY(EffectiveLimits(*location, controller)));
  }
  seen.limits = ToSeen(effective, host_has_swap);
  return seen;
}

Result<cell::OutsideAttestation> Observe(pid_t pid) {
  std::string intent = Text("observe process ", pid, " from outside");
  auto observe = [pid]() -> Result<cell::OutsideAttestation> {
    Layout layout = TRY(ReadLayout());
    bool host_has_swap = TRY(sys::HostHasSwap());
    sys::Proc proc = TRY(sys::Proc::Open());
    UniqueFd process = TRY(proc.Open(Text(pid), O_RDONLY | O_DIRECTORY));
    return ObserveIn(layout, process.get(), pid, host_has_swap);
  };
  return observe().With(intent);
}

}  // namespace taskcell::cgroup
