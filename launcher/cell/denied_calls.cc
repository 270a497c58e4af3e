#include "launcher/cell/denied_calls.h"

#include <algorithm>
#include <cerrno>

namespace taskcell::cell {
namespace {

constexpr DeniedWhere kLandlock = DeniedWhere::kLandlock;
constexpr DeniedWhere kScope = DeniedWhere::kLandlockScope;

constexpr DeniedCallRule kRules[] = {
    // Namespaces: succeeds without the filter wherever user namespaces are open to everyone.
    {"unshare NEWUSER", {EPERM}},
    {"unshare NEWNS", {EPERM}},
    {"setns", {EPERM}},
    {"clone NEWUSER", {EPERM}},
    {"clone3", {ENOSYS}},
    // Mounts.
    {"mount", {EPERM}},
    {"umount2", {EPERM}},
    {"open_tree", {EPERM}},
    {"fsopen", {EPERM}},
    {"move_mount", {EPERM}},
    {"pivot_root", {EPERM}},
    {"chroot", {EPERM}},
    {"open_by_handle_at", {EPERM}},
    // Other processes: each of these works on oneself without the filter.
    {"ptrace", {EPERM}},
    {"process_vm_readv", {EPERM}},
    {"process_vm_writev", {EPERM}},
    {"process_madvise", {EPERM}},
    {"pidfd_getfd", {EPERM}},
    {"kcmp", {EPERM}},
    {"getsockopt SO_PEERPIDFD", {EPERM}},
    {"prlimit64 init", {EPERM}},
    {"setrlimit CORE", {EPERM}, DeniedWhere::kEverywhere, true},
    // Memory that no limit counts.
    {"mmap MAP_HUGETLB", {EPERM}},
    {"memfd_create MFD_HUGETLB", {EPERM}},
    {"shmget SHM_HUGETLB", {EPERM}},
    // What would be left behind on files of the host.
    {"fchmod S_ISUID", {EPERM}},
    {"fchmod S_ISGID", {EPERM}},
    {"openat S_ISUID", {EPERM}},
    {"openat2", {ENOSYS, EPERM}},  // the mode is behind a pointer
    {"fcntl F_SETLEASE", {EPERM}},
    // Kernel surface.
    {"bpf", {EPERM}},
    {"perf_event_open", {EPERM}},
    {"userfaultfd", {EPERM}},
    {"io_uring_setup", {EPERM, ENOSYS}},  // ENOSYS makes programs fall back without a word
    {"keyctl", {EPERM}},
    {"add_key", {EPERM}},
    {"request_key", {EPERM}},
    {"socket AF_ALG", {EPERM}},
    {"socket AF_PACKET", {EPERM}},
    {"socket AF_VSOCK", {EPERM}},
    {"socket AF_NETLINK audit", {EPERM}},
    {"socket SCTP", {EPERM}},
    {"ioctl TIOCSTI", {EPERM}, DeniedWhere::kEverywhere, true},
    {"ioctl TIOCLINUX", {EPERM}, DeniedWhere::kEverywhere, true},
    // The machine.
    {"kexec_load", {EPERM}},
    {"init_module", {EPERM}},
    {"settimeofday", {EPERM}},
    {"clock_settime", {EPERM}},
    {"reboot", {EPERM}},
    {"swapon", {EPERM}},
    // Identity: EINVAL where the id has no mapping in the cell's user namespace.
    {"setuid 0", {EPERM, EINVAL}},
    {"setgroups", {EPERM}},
    // Files. The root answers EROFS before it looks at anybody's permissions.
    {"write /", {EROFS}},
    {"write /proc/sys/kernel/core_pattern", {EROFS, EACCES, EPERM, ENOENT}},
    {"write /proc/self/comm", {EACCES}, kLandlock},
    {"signal init", {EPERM}, kScope},
};

}  // namespace

std::span<const DeniedCallRule> DeniedCallRules() { return kRules; }

bool RuleApplies(const DeniedCallRule& rule, int32_t landlock_abi) {
  if (rule.where == DeniedWhere::kLandlock) return landlock_abi > 0;
  if (rule.where == DeniedWhere::kLandlockScope) return landlock_abi >= kLandlockScopeAbi;
  return true;
}

bool IsDenied(const DeniedCallRule& rule, int32_t result) {
  return result != 0 &&
         std::find(rule.allowed.begin(), rule.allowed.end(), result) != rule.allowed.end();
}

}  // namespace taskcell::cell
