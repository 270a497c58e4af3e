#include "launcher/cell/engine_additions.h"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "launcher/base/text.h"

namespace taskcell::cell {
namespace {

using enum AdditionKind;

constexpr std::string_view kNoExecution = "nosuid,nodev,noexec";
constexpr std::string_view kReadOnlyNoExecution = "ro,nosuid,nodev,noexec";
constexpr bool kFollows = true;

// runc and crun mask and protect the same parts of /proc and /sys (the OCI runtime's defaults,
// which grew over the years). Masks of /proc/<file> are the null device, of directories an empty
// tmpfs. Where the null device itself had to be bound (see kBoundDevices), so are its copies.
constexpr std::array kOci = std::to_array<Addition>({
    {"/proc", kFileSystem, "proc", kNoExecution},
    {"/proc/acpi", kMask, "", ""},
    {"/proc/asound", kMask, "", ""},
    {"/proc/interrupts", kMask, "", "", kFollows},
    {"/proc/kcore", kMask, "", "", kFollows},
    {"/proc/keys", kMask, "", "", kFollows},
    {"/proc/latency_stats", kMask, "", "", kFollows},
    {"/proc/sched_debug", kMask, "", "", kFollows},
    {"/proc/scsi", kMask, "", ""},
    {"/proc/timer_list", kMask, "", "", kFollows},
    {"/proc/timer_stats", kMask, "", "", kFollows},
    {"/proc/bus", kPart, "proc", "ro"},
    {"/proc/fs", kPart, "proc", "ro"},
    {"/proc/irq", kPart, "proc", "ro"},
    {"/proc/sys", kPart, "proc", "ro"},
    {"/proc/sysrq-trigger", kPart, "proc", "ro"},
    {"/dev", kFileSystem, "tmpfs", "nosuid"},
    {"/dev/pts", kFileSystem, "devpts", "nosuid,noexec"},
    {"/dev/shm", kFileSystem, "tmpfs", kNoExecution},
    {"/dev/mqueue", kFileSystem, "mqueue", kNoExecution},
    {"/sys", kFileSystem, "sysfs", kReadOnlyNoExecution},
    {"/sys/firmware", kMask, "", ""},
    {"/sys/devices/virtual/powercap", kMask, "", ""},
    {"/sys/devices/system/cpu/*", kMask, "", ""},
    {"/sys/fs/selinux", kMask, "", ""},
    {"/sys/dev/block", kMask, "", ""},
    {"/sys/fs/cgroup", kFileSystem, "tmpfs,cgroup2", kNoExecution},
    {"/sys/fs/cgroup/*", kPart, "cgroup,cgroup2", kReadOnlyNoExecution},
    {"/etc/resolv.conf", kFile, "", "ro"},
    {"/etc/hostname", kFile, "", "ro"},
    {"/etc/hosts", kFile, "", "ro"},
});

// Rootless: no device can be made in a user namespace, so those of the engine's /dev are bound.
// runc binds them without a propagation of their own: they stay slaves, as all of the mount
// namespace that rootlesskit makes (dockerd-rootless.sh asks for rslave) is of the host's. Only who
// may mount over the host's own /dev/null reaches them. crun makes them private.
constexpr std::array kBoundDevices = std::to_array<Addition>({
    {"/dev/null", kDevice, "", "nosuid", kFollows},
    {"/dev/zero", kDevice, "", "nosuid", kFollows},
    {"/dev/full", kDevice, "", "nosuid", kFollows},
    {"/dev/random", kDevice, "", "nosuid", kFollows},
    {"/dev/urandom", kDevice, "", "nosuid", kFollows},
    {"/dev/tty", kDevice, "", "nosuid", kFollows},
});

constexpr std::array kPodmanOnly = std::to_array<Addition>({
    {"/run/.containerenv", kFile, "", "ro"},
    // For a user the image does not know.
    {"/etc/passwd", kFile, "", "ro"},
    {"/etc/group", kFile, "", "ro"},
});

template <std::size_t kFirst, std::size_t kSecond>
constexpr std::array<Addition, kFirst + kSecond> Concatenate(
    const std::array<Addition, kFirst>& first, const std::array<Addition, kSecond>& second) {
  std::array<Addition, kFirst + kSecond> all;
  std::copy(first.begin(), first.end(), all.begin());
  std::copy(second.begin(), second.end(), all.begin() + kFirst);
  return all;
}

constexpr std::array kDocker = Concatenate(kOci, kBoundDevices);
constexpr std::array kPodman = Concatenate(kDocker, kPodmanOnly);

// Our own launcher; the rows of a host root are last.
constexpr Addition kNative[] = {
    {"/proc", kFileSystem, "proc", kNoExecution},
    {"/proc/acpi", kMask, "", ""},
    {"/proc/asound", kMask, "", ""},
    {"/proc/interrupts", kMask, "", ""},
    {"/proc/kcore", kMask, "", ""},
    {"/proc/key-users", kMask, "", ""},
    {"/proc/keys", kMask, "", ""},
    {"/proc/latency_stats", kMask, "", ""},
    {"/proc/sched_debug", kMask, "", ""},
    {"/proc/scsi", kMask, "", ""},
    {"/proc/thermal", kMask, "", ""},
    {"/proc/timer_list", kMask, "", ""},
    {"/proc/timer_stats", kMask, "", ""},
    {"/proc/sys", kPart, "proc", kReadOnlyNoExecution},
    {"/proc/irq", kPart, "proc", kReadOnlyNoExecution},
    {"/proc/bus", kPart, "proc", kReadOnlyNoExecution},
    {"/proc/fs", kPart, "proc", kReadOnlyNoExecution},
    {"/proc/sysrq-trigger", kPart, "proc", kReadOnlyNoExecution},
    {"/dev", kFileSystem, "tmpfs", kReadOnlyNoExecution},
    {"/dev/null", kDevice, "", "ro,nosuid,noexec"},
    {"/dev/zero", kDevice, "", "ro,nosuid,noexec"},
    {"/dev/full", kDevice, "", "ro,nosuid,noexec"},
    {"/dev/random", kDevice, "", "ro,nosuid,noexec"},
    {"/dev/urandom", kDevice, "", "ro,nosuid,noexec"},
    {"/dev/tty", kDevice, "", "ro,nosuid,noexec"},
    {"/dev/pts", kFileSystem, "devpts", "nosuid,noexec"},
    {"/dev/shm", kFileSystem, "tmpfs", kNoExecution},
    {"/usr", kTree, "", "ro,nosuid,nodev"},
    {"/usr/*", kTree, "", "ro,nosuid,nodev"},  // file systems the host has mounted below /usr
    {"/bin", kTree, "", "ro,nosuid,nodev"},
    {"/sbin", kTree, "", "ro,nosuid,nodev"},
    {"/lib", kTree, "", "ro,nosuid,nodev"},
    {"/lib32", kTree, "", "ro,nosuid,nodev"},
    {"/lib64", kTree, "", "ro,nosuid,nodev"},
    {"/libx32", kTree, "", "ro,nosuid,nodev"},
    {"/etc/alternatives", kTree, "", "ro,nosuid,nodev"},
    {"/etc/ssl/certs", kTree, "", "ro,nosuid,nodev"},
    {"/etc/pki/ca-trust/extracted", kTree, "", "ro,nosuid,nodev"},
    {"/etc/crypto-policies", kTree, "", "ro,nosuid,nodev"},
};

constexpr std::string_view kDockerEnvironment[] = {"PATH", "HOSTNAME", "HOME"};
constexpr std::string_view kPodmanEnvironment[] = {"PATH", "HOSTNAME", "HOME", "container", "TERM"};

std::span<const Addition> WithoutTrees(std::span<const Addition> rows) {
  std::size_t count = 0;
  while (count < rows.size() && rows[count].kind != kTree) ++count;
  return rows.first(count);
}

bool Matches(std::string_view pattern, std::string_view target) {
  if (!pattern.ends_with("/*")) return pattern == target;
  pattern.remove_suffix(1);
  return target.starts_with(pattern) && target.size() > pattern.size();
}

bool IsOneOf(std::string_view type, std::string_view types) {
  return types.empty() || HasMountOption(types, type);
}

std::string WhyNotMask(const MountInfoLine& line, const MountSeen& seen) {
  if (S_ISCHR(seen.mode)) {
    return line.root == "/null" ? "" : Text("a device, but '", Printable(line.root), "'");
  }
  bool empty = line.type == "tmpfs" && line.root == "/" && HasMountOption(line.options, "ro");
  return empty ? "" : "neither the null device nor a read-only tmpfs";
}

std::string WhyNotPart(const Addition& addition, const MountInfoLine& line) {
  // "/proc/sys" is the directory "/sys" of the process file system: not another part of it.
  constexpr std::string_view kProc = "/proc";
  if (!addition.target.starts_with(kProc)) return "";
  std::string_view part = addition.target.substr(kProc.size());
  return line.root == part ? "" : Text("'", Printable(line.root), "' of its file system");
}

// The device of that name, wherever its file system was mounted.
std::string WhyNotDevice(const Addition& addition, const MountInfoLine& line,
                         const MountSeen& seen) {
  if (!S_ISCHR(seen.mode)) return "no character device";
  std::string_view name = addition.target.substr(addition.target.rfind('/'));
  return line.root.ends_with(name) ? "" : Text("a device, but '", Printable(line.root), "'");
}

std::string WhyNotKind(const Addition& addition, const MountInfoLine& line, const MountSeen& seen) {
  switch (addition.kind) {
    case kFileSystem:
      return line.root == "/" ? "" : Text("only '", Printable(line.root), "' of it");
    case kMask:
      return WhyNotMask(line, seen);
    case kPart:
      return WhyNotPart(addition, line);
    case kFile:
      return S_ISREG(seen.mode) ? "" : "no regular file";
    case kDevice:
      return WhyNotDevice(addition, line, seen);
    case kTree:
      return S_ISDIR(seen.mode) ? "" : "no directory";
  }
  return "of an unknown kind";
}

}  // namespace

std::span<const Addition> EngineAdditions(Engine engine, RootKind root) {
  if (engine == Engine::kDocker) return kDocker;
  if (engine == Engine::kPodman) return kPodman;
  return root == RootKind::kHost ? std::span<const Addition>(kNative) : WithoutTrees(kNative);
}

std::span<const std::string_view> EngineEnvironment(Engine engine) {
  if (engine == Engine::kDocker) return kDockerEnvironment;
  if (engine == Engine::kPodman) return kPodmanEnvironment;
  return {};
}

const Addition* FindAddition(Engine engine, RootKind root, std::string_view target) {
  const Addition* found = nullptr;
  for (const Addition& addition : EngineAdditions(engine, root)) {
    if (!Matches(addition.target, target)) continue;
    // An exact row goes before a pattern.
    if (found == nullptr || addition.target == target) found = &addition;
  }
  return found;
}

std::string WhyNotAddition(const Addition& addition, const MountInfoLine& line,
                           const MountSeen& seen) {
  if (!IsOneOf(line.type, addition.types)) {
    return Text("a file system of type ", Printable(line.type));
  }
  // A cgroup2 or sysfs that could be written would let a process look for a way out of its limits.
  if (line.type == "cgroup2" && !HasMountOption(line.options, "ro")) return "mounted without ro";
  for (std::string_view option : Split(addition.required, ',')) {
    if (!option.empty() && !HasMountOption(line.options, option)) {
      return Text("mounted without ", option);
    }
  }
  std::string wrong = WhyNotKind(addition, line, seen);
  if (!wrong.empty() || line.optional_fields.empty()) return wrong;
  bool follows = line.optional_fields.size() == 1 && line.optional_fields[0].starts_with("master:");
  if (follows && addition.may_follow && S_ISCHR(seen.mode)) return "";
  return line.optional_fields[0];
}

}  // namespace taskcell::cell
