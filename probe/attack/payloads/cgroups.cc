// The cgroups that hold the cell's limits.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "cgroups";
constexpr char kCgroups[] = "/sys/fs/cgroup";

// The directories of the own cgroup, as they are called here: of the unified hierarchy, and of
// memory's and pids' on v1.
std::vector<std::string> OwnCgroups() {
  constexpr std::size_t kMaxBytes = 64U << 10U;
  std::vector<std::string> directories = {kCgroups, Text(kCgroups, "/memory"),
                                          Text(kCgroups, "/pids"), Text(kCgroups, "/unified")};
  Result<std::string> lines = sys::ReadFile(AT_FDCWD, "/proc/self/cgroup", kMaxBytes);
  if (!lines.ok()) return directories;
  for (std::string_view line : Split(lines.value(), '\n')) {
    std::vector<std::string_view> parts = Split(line, ':');
    if (parts.size() < 3) continue;
    std::string_view controller = parts[1].empty() ? "" : parts[1];
    directories.push_back(Text(kCgroups, controller.empty() ? "" : "/", controller, parts[2]));
  }
  return directories;
}

Attempted OpenAny(std::initializer_list<const char*> names) {
  Attempted last = {ENOENT};
  for (const std::string& directory : OwnCgroups()) {
    for (const char* name : names) {
      Attempted opened = TryOpening(Text(directory, "/", name), O_WRONLY);
      if (opened.result == 0) return opened;
      if (opened.result != ENOENT) last = opened;
    }
  }
  return last;
}

Attempted RaiseLimits(const Targets& /*targets*/) {
  return OpenAny({"memory.max", "memory.limit_in_bytes", "pids.max", "cpu.max"});
}

Attempted MoveItself(const Targets& /*targets*/) { return OpenAny({"cgroup.procs", "tasks"}); }

Attempted SetReleaseAgent(const Targets& /*targets*/) { return OpenAny({"release_agent"}); }

Attempted MakeCgroup(const Targets& /*targets*/) {
  Attempted last = {ENOENT};
  for (const std::string& directory : OwnCgroups()) {
    std::string path = directory + "/taskcell-attack";
    int64_t made = Call(SYS_mkdirat, AT_FDCWD, path.c_str(), 0700);
    if (made == 0) (void)Call(SYS_unlinkat, AT_FDCWD, path.c_str(), AT_REMOVEDIR);
    if (made == 0) return {0, path};
    if (made != -ENOENT) last = Of(made, path);
  }
  return last;
}

// CVE-2022-0492: root of a new user namespace mounts a v1 hierarchy and sets the program that the
// kernel starts, outside of everything, when a cgroup becomes empty.
Attempted MountHierarchy(const Targets& targets, std::initializer_list<const char*> controllers) {
  // Outside it is in such a namespace already; in a cell this is refused, and the mount all the
  // same.
  (void)Call(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP);
  Attempted last = {ENODEV};
  for (const char* controller : controllers) {
    int64_t mounted = Call(SYS_mount, "none", targets.scratch.c_str(), "cgroup", 0, controller);
    last = Of(mounted, controller);
    if (mounted == 0) return last;
  }
  int64_t unified = Call(SYS_mount, "none", targets.scratch.c_str(), "cgroup2", 0, 0);
  return unified == 0 ? Attempted{0, "cgroup2"} : last.result == EPERM ? last : Of(unified);
}

Attempted MountForReleaseAgent(const Targets& targets) {
  return MountHierarchy(targets, {"memory", "pids", "rdma", "misc"});
}

// A cgroup file system of its own shows the own cgroup as its root: the limits, were they there.
Attempted LiftLimits(const Targets& targets) {
  Attempted mounted = MountHierarchy(targets, {"memory", "pids"});
  if (mounted.result != 0) return mounted;
  for (const char* name : {"memory.limit_in_bytes", "memory.max", "pids.max", "cgroup.procs"}) {
    Attempted opened = TryOpening(Text(targets.scratch, "/", name), O_WRONLY);
    if (opened.result == 0) return opened;
    mounted = opened;
  }
  return mounted;
}

// ENOENT: there is no /sys in the cell. EROFS, EACCES: an engine shows it read-only.
constexpr Payload kPayloads[] = {
    {"raise-limits",
     kTopic,
     "write the files of its own limits",
     Control::kRoot,
     {ENOENT, EROFS, EACCES},
     RaiseLimits},
    {"move-itself",
     kTopic,
     "move itself to another cgroup",
     Control::kRoot,
     {ENOENT, EROFS, EACCES},
     MoveItself},
    {"make-cgroup", kTopic, "make a cgroup", Control::kRoot, {ENOENT, EROFS, EACCES}, MakeCgroup},
    {"release-agent",
     kTopic,
     "set the release agent of a hierarchy",
     Control::kRoot,
     {ENOENT, EROFS, EACCES},
     SetReleaseAgent},
    {"cve-2022-0492-release-agent",
     kTopic,
     "mount a hierarchy to set its release agent",
     Control::kNamespace,
     {EPERM},
     MountForReleaseAgent},
    {"lift-limits-by-mount",
     kTopic,
     "mount a hierarchy to lift its own limits",
     Control::kRoot,
     {EPERM},
     LiftLimits},
};

}  // namespace

std::span<const Payload> CgroupPayloads() { return kPayloads; }

}  // namespace taskcell::attack
