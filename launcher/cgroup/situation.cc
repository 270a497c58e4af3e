#include "launcher/cgroup/situation.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "launcher/base/accounts.h"
#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/limits.h"
#include "launcher/cgroup/remedy.h"

namespace taskcell::cgroup {
namespace {

constexpr std::size_t kMaxProcFileBytes = 64U << 10U;
constexpr std::size_t kMaxPasswdBytes = 4U << 20U;
constexpr std::size_t kMaxLevels = 64;  // systemd's deepest are about a dozen

constexpr const char* kUnifiedFiles[] = {
    "cgroup.controllers", "cgroup.subtree_control", "cgroup.procs", "cgroup.threads", "cgroup.type",
    "cgroup.max.depth",   "cgroup.max.descendants", "cgroup.stat",  "cgroup.freeze",  "memory.max",
    "memory.swap.max",    "memory.oom.group",       "pids.max",     "pids.current",   "cpu.max"};
constexpr const char* kV1Files[] = {
    "cgroup.procs",     "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
    "pids.max",         "pids.current",          "cpu.cfs_quota_us",
    "cpu.cfs_period_us"};

Level ReadOne(sys::FileTree& tree, const std::string& path, bool unified) {
  Level level;
  level.path = path;
  level.directory = tree.Look(path);
  if (level.directory.absent()) return level;
  auto read = [&](const auto& names) {
    for (const char* name : names)
      level.files.emplace_back(name, tree.Read(level.FilePath(name), kMaxControlFileBytes));
  };
  if (unified)
    read(kUnifiedFiles);
  else
    read(kV1Files);
  return level;
}

std::string ValueOfLine(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    if (line.substr(0, key.size()) == key) return std::string(Trim(line.substr(key.size())));
  }
  return {};
}

std::string TextOf(sys::FileTree& tree, const std::string& path) {
  return tree.Read(path, kMaxProcFileBytes).text;
}

// "0 0 4294967295" is the initial user namespace's map (user_namespaces(7)).
bool IsWholeMap(std::string_view uid_map) {
  std::vector<std::string_view> words = Words(uid_map);
  return words.size() == 3 && words[0] == "0" && words[1] == "0" && words[2] == "4294967295";
}

void ReadIds(sys::FileTree& tree, const Subject& subject, Surroundings& around) {
  std::string status = TextOf(tree, Text("/proc/", subject.process, "/status"));
  std::string uids = ValueOfLine(status, "Uid:");  // real, effective, saved, file system
  std::vector<std::string_view> ids = Words(uids);
  uint64_t own = ids.size() > 1 ? ParseUnsigned(ids[1]).value_or(UINT64_MAX) : UINT64_MAX;
  around.uid_known = subject.uid || own <= UINT32_MAX;
  around.uid = subject.uid ? *subject.uid : static_cast<uint32_t>(own);
  if (own != around.uid) return;  // another user's groups are not in this file
  std::string gids = ValueOfLine(status, "Gid:") + " " + ValueOfLine(status, "Groups:");
  for (std::string_view word : Words(gids)) {
    std::optional<uint64_t> gid = ParseUnsigned(word);
    if (gid) around.groups.push_back(static_cast<uint32_t>(*gid));
  }
}

bool NamesSlice(std::string_view path) {
  for (std::string_view part : Split(path, '/')) {
    if (part.size() > 6 && part.substr(part.size() - 6) == ".slice") return true;
  }
  return false;
}

// Whether the cgroups are systemd's. Asked of its own mark first; a tree of files that lacks /run
// still shows the names only systemd gives.
bool HasSystemd(sys::FileTree& tree, const Chain& unified) {
  if (NamesSlice(unified.hierarchy.own_path)) return true;
  return tree.Look(unified.hierarchy.mount_point + "/init.scope").present();
}

void PlaceSubject(sys::FileTree& tree, const Subject& subject, uint32_t uid, Hierarchy& hierarchy) {
  if (!subject.cgroup_path.empty()) hierarchy.own_path = subject.cgroup_path;
  if (!subject.user_manager) return;
  std::string path = UserManagerPath(uid);
  bool runs = hierarchy.unified && tree.Look(hierarchy.mount_point + path).present();
  hierarchy.own_path = runs ? path : hierarchy.mount_root;
}

bool HoldsLimits(const Hierarchy& hierarchy) {
  if (hierarchy.unified) return true;
  for (Controller controller : kControllers) {
    const std::vector<std::string>& names = hierarchy.controllers;
    if (std::find(names.begin(), names.end(), Name(controller)) != names.end()) return true;
  }
  return false;
}

}  // namespace

const sys::FileSeen& Level::File(std::string_view name) const {
  static const sys::FileSeen kAbsent;
  for (const auto& [each, seen] : files) {
    if (each == name) return seen;
  }
  return kAbsent;
}

std::string Level::FilePath(std::string_view name) const {
  return path == "/" ? Text(path, name) : Text(path, "/", name);
}

std::string UserManagerPath(uint32_t uid) {
  return Text("/user.slice/user-", uid, ".slice/user@", uid, ".service");
}

bool Chain::mounted_below_root() const {
  return !levels.empty() && hierarchy.unified && levels.front().File("cgroup.type").present();
}

const Chain* Situation::Find(std::string_view controller) const {
  const Chain* unified = nullptr;
  for (const Chain& each : chains) {
    const std::vector<std::string>& names = each.hierarchy.controllers;
    if (std::find(names.begin(), names.end(), controller) != names.end()) return &each;
    if (each.hierarchy.unified) unified = &each;
  }
  return unified;
}

Surroundings ReadSurroundings(sys::FileTree& tree, const Subject& subject) {
  Surroundings around;
  ReadIds(tree, subject, around);
  around.user = LoginName(tree.Read("/etc/passwd", kMaxPasswdBytes).text, around.uid);
  around.systemd = tree.Look("/run/systemd/system").IsKind(S_IFDIR);
  std::string runtime = Text("/run/user/", around.uid);
  around.runtime_directory = tree.Look(runtime).IsKind(S_IFDIR);
  around.user_bus = tree.Look(runtime + "/bus").IsKind(S_IFSOCK);
  sys::FileSeen map = tree.Read("/proc/self/uid_map", kMaxProcFileBytes);
  around.in_user_namespace = map.present() && !IsWholeMap(map.text);
  around.host_has_swap = ListsSwap(TextOf(tree, "/proc/swaps"));
  around.command_line = TextOf(tree, "/proc/cmdline");
  around.kernel_cgroups = TextOf(tree, "/proc/cgroups");
  return around;
}

void Complete(sys::FileTree& tree, const Chain& chain, Surroundings& around) {
  if (chain.hierarchy.unified && HasSystemd(tree, chain)) around.systemd = true;
  if (chain.hierarchy.unified && !chain.hierarchy.mount_point.empty()) {
    std::string manager = chain.hierarchy.mount_point + UserManagerPath(around.uid);
    around.user_manager = tree.Look(manager).present();
  }
  bool part_of_v1 = !chain.hierarchy.mount_point.empty() && chain.hierarchy.mount_root != "/";
  if (part_of_v1 || chain.mounted_below_root()) around.in_container = true;
}

Chain ReadChain(sys::FileTree& tree, const Hierarchy& hierarchy, uint32_t uid) {
  Chain chain;
  chain.hierarchy = hierarchy;
  if (hierarchy.mount_point.empty()) return chain;
  Level root = ReadOne(tree, hierarchy.mount_point, hierarchy.unified);
  chain.covered = root.directory.device != 0 &&
                  root.directory.device != makedev(hierarchy.major, hierarchy.minor);
  std::optional<std::string> below = BelowMount(hierarchy, hierarchy.own_path);
  std::vector<std::string_view> parts;
  if (below) parts = Split(*below, '/');
  if (below && parts.size() <= kMaxLevels) {
    std::string path = hierarchy.mount_point;
    chain.levels.push_back(root);
    for (std::string_view part : parts) {
      if (part.empty()) continue;
      path += Text('/', part);
      chain.levels.push_back(ReadOne(tree, path, hierarchy.unified));
    }
  }
  std::string path = hierarchy.mount_point;
  const std::string delegated = DelegatedBelow(uid);
  for (std::string_view part : Split(delegated, '/')) {
    path += Text('/', part);
    Level level = ReadOne(tree, path, hierarchy.unified);
    if (level.directory.absent()) break;
    chain.prepared.push_back(std::move(level));
  }
  return chain;
}

namespace {

// What two files say of the same hierarchy must agree: on a real host every mounted hierarchy has
// its one line.
std::string Contradiction(const Layout& layout, std::string_view mountinfo) {
  std::size_t unified = 0;
  for (const Hierarchy& each : layout.hierarchies) unified += each.unified ? 1 : 0;
  if (unified > 1) return "/proc/self/cgroup has more than one line for the unified hierarchy";
  Result<std::vector<MountInfoLine>> mounts = ParseMountInfo(mountinfo);
  if (!mounts.ok()) return mounts.error().text;
  for (const MountInfoLine& mount : mounts.value()) {
    if (mount.type == "cgroup2" && unified == 0)
      return Text("cgroup2 is mounted at ", Printable(mount.mount_point),
                  ", but /proc/self/cgroup has no line for it");
    if (mount.type != "cgroup") continue;
    for (Controller controller : kControllers) {
      const Hierarchy* holder = layout.Find(controller);
      bool known = holder != nullptr && !holder->unified;
      if (HasMountOption(mount.super_options, Name(controller)) && !known)
        return Text("a v1 hierarchy of ", Name(controller), " is mounted at ",
                    Printable(mount.mount_point), ", but /proc/self/cgroup has no line for it");
    }
  }
  return {};
}

}  // namespace

Situation ReadSituation(sys::FileTree& tree, const Subject& subject) {
  Situation situation;
  situation.around = ReadSurroundings(tree, subject);
  std::string memberships_path = Text("/proc/", subject.process, "/cgroup");
  sys::FileSeen memberships = tree.Read(memberships_path, kMaxProcCgroupBytes);
  sys::FileSeen mounts = tree.Read("/proc/self/mountinfo", kMaxMountInfoBytes);
  if (!memberships.present() || !mounts.present()) {
    situation.problem =
        Text(memberships.present() ? "/proc/self/mountinfo" : memberships_path, " cannot be read");
    return situation;
  }
  Result<Layout> layout = ParseLayout(memberships.text, mounts.text);
  if (!layout.ok()) {
    situation.problem = layout.error().text;
    return situation;
  }
  situation.problem = Contradiction(layout.value(), mounts.text);
  if (!situation.around.uid_known) situation.problem = "/proc/self/status does not tell the uid";
  situation.mode = layout->mode;
  for (Hierarchy& hierarchy : layout->hierarchies) {
    if (!HoldsLimits(hierarchy)) continue;
    PlaceSubject(tree, subject, situation.around.uid, hierarchy);
    situation.chains.push_back(ReadChain(tree, hierarchy, situation.around.uid));
    Complete(tree, situation.chains.back(), situation.around);
  }
  return situation;
}

}  // namespace taskcell::cgroup
