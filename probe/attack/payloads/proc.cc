// /proc and /sys as a way to the kernel's settings and to what is hidden there.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "proc";
constexpr uint64_t kBind = 0x1000;  // MS_BIND

// Opened for writing, which is where a kernel setting is lost; nothing is written.
template <const char* kPath>
Attempted OpenForWriting(const Targets& /*targets*/) {
  return TryOpening(kPath, O_WRONLY);
}
constexpr char kCorePattern[] = "/proc/sys/kernel/core_pattern";
constexpr char kModprobe[] = "/proc/sys/kernel/modprobe";
constexpr char kSysrq[] = "/proc/sysrq-trigger";
constexpr char kUserNamespaces[] = "/proc/sys/user/max_user_namespaces";
constexpr char kInotify[] = "/proc/sys/user/max_inotify_instances";
constexpr char kForwarding[] = "/proc/sys/net/ipv4/ip_forward";
constexpr char kUevent[] = "/sys/kernel/uevent_helper";
constexpr char kInterrupts[] = "/proc/irq/default_smp_affinity";

// CVE-2025-31133: a runtime covers these with /dev/null, and where that is not the null device but
// a link the job laid, it covers nothing or binds something else. What is covered reads as empty.
Attempted ReadMasked(const Targets& /*targets*/) {
  Attempted last = {ENOENT};
  for (const char* path : {"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/acpi",
                           "/proc/sched_debug", "/proc/latency_stats"}) {
    struct stat info = {};
    constexpr int kNoLinks = AT_SYMLINK_NOFOLLOW;
    if (Call(SYS_newfstatat, AT_FDCWD, path, &info, kNoLinks) < 0) continue;
    if (S_ISDIR(info.st_mode)) continue;
    Attempted read = TryReading(path);
    if (read.result == 0) return read;
    last = read;
  }
  return last;
}

// The other half of it: the null device itself replaced, so that whatever is covered with it next
// becomes readable. Outside on a /dev of its own.
Attempted ReplaceNullDevice(const Targets& /*targets*/) {
  // Their outcome shows in the next call.
  (void)Call(SYS_mount, "none", "/dev", "tmpfs", 0, 0);
  (void)Call(SYS_mknodat, AT_FDCWD, "/dev/null", S_IFREG | 0600, 0);
  int64_t removed = Call(SYS_unlinkat, AT_FDCWD, "/dev/null", 0);
  if (removed < 0) return Of(removed, "unlinkat");
  return Of(Call(SYS_symlinkat, kCorePattern, AT_FDCWD, "/dev/null"), "symlinkat");
}

// CVE-2025-52565: /dev/console is made over a name the job may have laid there before.
Attempted LayConsole(const Targets& /*targets*/) {
  (void)Call(SYS_mount, "none", "/dev", "tmpfs", 0, 0);
  (void)Call(SYS_unlinkat, AT_FDCWD, "/dev/console", 0);
  return Of(Call(SYS_symlinkat, kCorePattern, AT_FDCWD, "/dev/console"));
}

// CVE-2025-52881: what is written to /proc/self/attr or to a sysctl lands elsewhere when the job
// gets something of its own mounted over it.
Attempted CoverAttributes(const Targets& targets) {
  return Of(Call(SYS_mount, targets.scratch.c_str(), "/proc/self/attr", 0, kBind, 0));
}

Attempted CoverSettings(const Targets& targets) {
  return Of(Call(SYS_mount, targets.scratch.c_str(), "/proc/sys", 0, kBind, 0));
}

Attempted SeeProcessOutside(const Targets& targets) {
  return TryReading(Text("/proc/", targets.victim, "/status"));
}

Attempted LowerOomScore(const Targets& /*targets*/) {
  int64_t opened = OpenFile("/proc/self/oom_score_adj", O_WRONLY);
  if (opened < 0) return Of(opened, "open");
  UniqueFd file(static_cast<int>(opened));
  return Of(Call(SYS_write, file.get(), "-1000", 5), "write");
}

constexpr Control kOutsideRoot = Control::kNamespace;

// ENOENT: not in the cell at all (no /sys, /proc with subset=pid).
constexpr Payload kPayloads[] = {
    {"core-pattern",
     kTopic,
     "set the program that handles core dumps",
     Control::kRoot,
     {EROFS, EACCES, ENOENT},
     OpenForWriting<kCorePattern>},
    {"modprobe-path",
     kTopic,
     "set the program that loads modules",
     Control::kRoot,
     {EROFS, EACCES, ENOENT},
     OpenForWriting<kModprobe>},
    {"uevent-helper",
     kTopic,
     "set the program that handles device events",
     Control::kRoot,
     {EROFS, EACCES, ENOENT},
     OpenForWriting<kUevent>},
    {"sysrq",
     kTopic,
     "restart the machine by sysrq",
     Control::kRoot,
     {EROFS, EACCES, ENOENT},
     OpenForWriting<kSysrq>},
    {"interrupt-affinity",
     kTopic,
     "move the machine's interrupts",
     Control::kRoot,
     {EROFS, EACCES, ENOENT},
     OpenForWriting<kInterrupts>},
    {"user-namespace-quota",
     kTopic,
     "raise its quota of user namespaces",
     kOutsideRoot,
     {EROFS, EACCES, ENOENT},
     OpenForWriting<kUserNamespaces>},
    {"inotify-limit",
     kTopic,
     "raise its quota of inotify instances",
     kOutsideRoot,
     {EROFS, EACCES, ENOENT},
     OpenForWriting<kInotify>},
    {"forwarding",
     kTopic,
     "make the host forward packets",
     kOutsideRoot,
     {EROFS, EACCES, ENOENT},
     OpenForWriting<kForwarding>},
    {"oom-immunity",
     kTopic,
     "exempt itself from being killed when memory runs out",
     Control::kRoot,
     {EACCES, EPERM},
     LowerOomScore},
    {"cve-2025-31133-masked-path",
     kTopic,
     "read what of /proc is covered",
     Control::kRoot,
     {kCovered, ENOENT, EACCES},
     ReadMasked},
    {"cve-2025-31133-null-device",
     kTopic,
     "put a link in place of the null device",
     kOutsideRoot,
     {EROFS, EACCES, EBUSY},
     ReplaceNullDevice},
    {"cve-2025-52565-console",
     kTopic,
     "put a link where a console is to be made",
     kOutsideRoot,
     {EROFS, EACCES, EEXIST},
     LayConsole},
    {"cve-2025-52881-attributes",
     kTopic,
     "put a directory of its own over /proc/self/attr",
     kOutsideRoot,
     {EPERM},
     CoverAttributes},
    {"cve-2025-52881-settings",
     kTopic,
     "put a directory of its own over /proc/sys",
     kOutsideRoot,
     {EPERM},
     CoverSettings},
    {"see-process-outside",
     kTopic,
     "see a process outside of the cell",
     Control::kUser,
     {ENOENT},
     SeeProcessOutside},
};

}  // namespace

std::span<const Payload> ProcPayloads() { return kPayloads; }

}  // namespace taskcell::attack
