#include "launcher/init/denied_attempts.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/reboot.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/cell/attestation.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/trial.h"
#include "seccomp/evaluator.h"

namespace taskcell::init {
namespace {

using sys::Address;

#if defined(__x86_64__)
constexpr uint32_t kAuditArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kAuditArchitecture = AUDIT_ARCH_AARCH64;
#endif

// The filter that is asked, and what it said. The witness has one thread and makes one attempt
// after the other.
struct Asked {
  std::span<const sock_filter> filter;
  int32_t answer = 0;
};
Asked& FilterOfJob() {
  static Asked asked;
  return asked;
}

int32_t AnswerOf(std::span<const sock_filter> filter, const seccomp_data& call) {
  std::optional<seccomp::Evaluation> evaluated = seccomp::Evaluate(filter, call);
  if (!evaluated) return cell::DeniedCall::kEnds;  // no filter the kernel would have taken
  switch (evaluated->action & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ERRNO:
      return static_cast<int32_t>(evaluated->action & SECCOMP_RET_DATA);
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
      return cell::DeniedCall::kLeftOpen;
    default:
      return cell::DeniedCall::kEnds;
  }
}

// True when the call may be made: it cannot succeed, and ends nobody.
bool MayBeMade(long number, const std::array<uint64_t, 6>& arguments) {
  Asked& asked = FilterOfJob();
  if (asked.filter.empty()) return true;
  seccomp_data call = {};
  call.nr = static_cast<int>(number);
  call.arch = kAuditArchitecture;
  std::copy(arguments.begin(), arguments.end(), call.args);
  asked.answer = AnswerOf(asked.filter, call);
  return asked.answer > 0;
}

int32_t TrySyscall(long number, uint64_t first = 0, uint64_t second = 0, uint64_t third = 0,
                   uint64_t fourth = 0, uint64_t fifth = 0, uint64_t sixth = 0) {
  if (!MayBeMade(number, {first, second, third, fourth, fifth, sixth})) return 0;
  return sys::TrySyscall(number, first, second, third, fourth, fifth, sixth);
}

// The same of a call that the default filter lets through too, and the kernel refuses: it is made
// unless this filter ends who makes it.
template <long kNumber>
int32_t TryRefused() {
  if (MayBeMade(kNumber, {})) return sys::TrySyscall(kNumber);
  Asked& asked = FilterOfJob();
  if (asked.answer == cell::DeniedCall::kEnds) return 0;
  asked.answer = 0;
  return sys::TrySyscall(kNumber);
}

int32_t TryClone(uint64_t flags) {
  return MayBeMade(SYS_clone, {flags | SIGCHLD}) ? sys::TryClone(flags) : 0;
}

constexpr uint64_t kNoDescriptor = ~uint64_t{0};
constexpr uint64_t kInitPid = 1;

// Numbers that the headers of older systems lack; the same on every architecture.
constexpr long kOpenTree = 428;
constexpr long kMoveMount = 429;
constexpr long kFsopen = 430;
constexpr long kClone3 = 435;
constexpr long kPidfdGetfd = 438;
constexpr long kProcessMadvise = 440;
constexpr long kIoUringSetup = 425;
constexpr long kOpenAt2 = 437;

constexpr uint64_t kSetUserId = 04755;
constexpr uint64_t kSetGroupId = 02755;
constexpr uint64_t kSegmentOfHugePages = 04000;  // SHM_HUGETLB

uint64_t Self() { return static_cast<uint64_t>(sys::OwnPid()); }

uint64_t Number(const UniqueFd& fd) { return static_cast<uint64_t>(fd.get()); }

int32_t Mount() {
  return TrySyscall(SYS_mount, Address("none"), Address("/tmp"), Address("tmpfs"));
}

int32_t Clone3() {
  // A size the kernel refuses (EINVAL): where nothing denies the call, no process comes of it.
  return TrySyscall(kClone3, 0, 0);
}

template <long kNumber>
int32_t CopyOwnMemory() {
  char from = 'x';
  char to = 0;
  struct iovec local = {&to, 1};
  struct iovec remote = {&from, 1};
  return TrySyscall(kNumber, Self(), Address(&local), 1, Address(&remote), 1);
}

int32_t PidfdGetfd() {
  UniqueFd pidfd = sys::OwnPidfd();
  return TrySyscall(kPidfdGetfd, Number(pidfd), 0, 0);
}

int32_t AdviseProcess() {
  char byte = 0;
  struct iovec range = {&byte, 1};
  UniqueFd pidfd = sys::OwnPidfd();
  return TrySyscall(kProcessMadvise, Number(pidfd), Address(&range), 1, MADV_COLD, 0);
}

int32_t PeerPidfd() {
  constexpr uint64_t kSoPeerPidfd = 77;
  Result<sys::SocketPair> pair = sys::MakePacketPair();
  if (!pair.ok()) return pair.error().err;
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  return TrySyscall(SYS_getsockopt, Number(pair->first), SOL_SOCKET, kSoPeerPidfd, Address(&pidfd),
                    Address(&size));
}

int32_t LimitInit() {
  struct rlimit limit = {};
  return TrySyscall(SYS_prlimit64, kInitPid, RLIMIT_NOFILE, 0, Address(&limit));
}

int32_t SetCoreLimit() {
  struct rlimit limit = {0, 0};
  return TrySyscall(SYS_setrlimit, RLIMIT_CORE, Address(&limit));
}

template <uint64_t kDomain, uint64_t kProtocol>
int32_t Socket() {
  return TrySyscall(SYS_socket, kDomain, SOCK_RAW | SOCK_CLOEXEC, kProtocol);
}

int32_t SocketAlgorithm() {
  return TrySyscall(SYS_socket, AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

int32_t SocketStreamControl() {
  constexpr uint64_t kSctp = 132;
  return TrySyscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, kSctp);
}

int32_t SocketVirtualMachine() {
  return TrySyscall(SYS_socket, AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

template <uint64_t kRequest>
int32_t Terminal() {
  char letter = 'x';
  return TrySyscall(SYS_ioctl, 0, kRequest, Address(&letter));
}

int32_t Keyctl() {
  constexpr uint64_t kGetKeyringId = 0;
  constexpr uint64_t kProcessKeyring = ~uint64_t{0} - 1;  // -2
  return TrySyscall(SYS_keyctl, kGetKeyringId, kProcessKeyring, 1);
}

int32_t AddKey() {
  constexpr uint64_t kProcessKeyring = ~uint64_t{0} - 1;
  return TrySyscall(SYS_add_key, Address("user"), Address("taskcell"), Address("x"), 1,
                    kProcessKeyring);
}

template <long kNumber>
int32_t SetTime() {
  // No time at all: EFAULT or EINVAL where nothing denies the call.
  return TrySyscall(kNumber, 0, 0);
}

int32_t Reboot() {
  constexpr uint64_t kBadMagic = 1;
  return TrySyscall(SYS_reboot, kBadMagic, kBadMagic, LINUX_REBOOT_CMD_CAD_OFF);
}

int32_t WriteRoot() {
  constexpr const char* kPath = "/taskcell-witness";
  int32_t outcome = sys::TryOpen(kPath, O_WRONLY | O_CREAT | O_EXCL);
  // ignoring: a cell where this is needed is refused anyway
  if (outcome == 0) (void)sys::RemoveFile(AT_FDCWD, kPath);
  return outcome;
}

// Only of a dumpable process these files are its own; else their mode would refuse, not Landlock.
int32_t WriteOwnName() {
  Status shown = sys::SetDumpable();
  if (!shown.ok()) return shown.error().err;
  int32_t outcome = sys::TryOpen("/proc/self/comm", O_WRONLY);
  Status hidden = sys::SetNotDumpable();
  return hidden.ok() ? outcome : hidden.error().err;
}

struct Attempt {
  std::string_view name;
  int32_t (*make)();
};

constexpr Attempt kAttempts[] = {
    {"unshare NEWUSER", [] { return TrySyscall(SYS_unshare, CLONE_NEWUSER); }},
    {"unshare NEWNS", [] { return TrySyscall(SYS_unshare, CLONE_NEWNS); }},
    {"setns", [] { return TrySyscall(SYS_setns, kNoDescriptor, 0); }},
    {"clone NEWUSER", [] { return TryClone(CLONE_NEWUSER); }},
    {"clone3", Clone3},
    {"mount", Mount},
    {"umount2", [] { return TrySyscall(SYS_umount2, Address("/tmp"), 0); }},
    {"open_tree", [] { return TrySyscall(kOpenTree, kNoDescriptor, Address("/"), 0); }},
    {"fsopen", [] { return TrySyscall(kFsopen, Address("tmpfs"), 0); }},
    {"move_mount",
     [] {
       return TrySyscall(kMoveMount, kNoDescriptor, Address("/tmp"), kNoDescriptor, Address("/tmp"),
                         0);
     }},
    {"pivot_root", [] { return TrySyscall(SYS_pivot_root, Address("/tmp"), Address("/tmp")); }},
    {"chroot", [] { return TrySyscall(SYS_chroot, Address("/")); }},
    {"open_by_handle_at", [] { return TrySyscall(SYS_open_by_handle_at, kNoDescriptor, 0, 0); }},
    {"ptrace", [] { return TrySyscall(SYS_ptrace, 0); }},  // PTRACE_TRACEME
    {"process_vm_readv", CopyOwnMemory<SYS_process_vm_readv>},
    {"process_vm_writev", CopyOwnMemory<SYS_process_vm_writev>},
    {"process_madvise", AdviseProcess},
    {"pidfd_getfd", PidfdGetfd},
    {"kcmp",
     [] {
       constexpr uint64_t kSameMemory = 1;  // KCMP_VM
       return TrySyscall(SYS_kcmp, Self(), Self(), kSameMemory);
     }},
    {"getsockopt SO_PEERPIDFD", PeerPidfd},
    {"prlimit64 init", LimitInit},
    {"setrlimit CORE", SetCoreLimit},
    // Where nothing denies one of these it fails as well: no length, no name, no descriptor.
    {"mmap MAP_HUGETLB",
     [] {
       return TrySyscall(SYS_mmap, 0, 0, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
                         kNoDescriptor, 0);
     }},
    {"memfd_create MFD_HUGETLB", [] { return TrySyscall(SYS_memfd_create, 0, MFD_HUGETLB); }},
    {"shmget SHM_HUGETLB",
     [] { return TrySyscall(SYS_shmget, IPC_PRIVATE, 0, kSegmentOfHugePages | IPC_CREAT); }},
    {"fchmod S_ISUID", [] { return TrySyscall(SYS_fchmod, kNoDescriptor, kSetUserId); }},
    {"fchmod S_ISGID", [] { return TrySyscall(SYS_fchmod, kNoDescriptor, kSetGroupId); }},
    {"openat S_ISUID",
     [] { return TrySyscall(SYS_openat, kNoDescriptor, 0, O_CREAT | O_WRONLY, kSetUserId); }},
    {"openat2", [] { return TrySyscall(kOpenAt2, kNoDescriptor, 0, 0, 0); }},
    {"fcntl F_SETLEASE", [] { return TrySyscall(SYS_fcntl, kNoDescriptor, F_SETLEASE, F_UNLCK); }},
    {"bpf", [] { return TrySyscall(SYS_bpf, kNoDescriptor, 0, 0); }},
    {"perf_event_open", [] { return TrySyscall(SYS_perf_event_open, 0, 0, 0, kNoDescriptor, 0); }},
    {"userfaultfd", [] { return TrySyscall(SYS_userfaultfd, O_CLOEXEC | 1); }},  // UFFD_USER_MODE
    {"io_uring_setup", [] { return TrySyscall(kIoUringSetup, 0, 0); }},
    {"keyctl", Keyctl},
    {"add_key", AddKey},
    {"request_key",
     [] { return TrySyscall(SYS_request_key, Address("user"), Address("taskcell"), 0, 0); }},
    {"socket AF_ALG", SocketAlgorithm},
    {"socket AF_PACKET", Socket<AF_PACKET, 0>},
    {"socket AF_VSOCK", SocketVirtualMachine},
    {"socket SCTP", SocketStreamControl},
    {"socket AF_NETLINK audit", Socket<AF_NETLINK, 9>},  // NETLINK_AUDIT
    {"ioctl TIOCSTI", Terminal<0x5412>},
    {"ioctl TIOCLINUX", Terminal<0x541c>},
    {"kexec_load", [] { return TrySyscall(SYS_kexec_load, 0, 0, 0, kNoDescriptor); }},
    {"init_module", [] { return TrySyscall(SYS_init_module, 0, 0, 0); }},
    {"settimeofday", SetTime<SYS_settimeofday>},
    {"clock_settime", SetTime<SYS_clock_settime>},
    {"reboot", Reboot},
    {"swapon", [] { return TrySyscall(SYS_swapon, Address("/"), 0); }},
    {"setuid 0", TryRefused<SYS_setuid>},
    {"setgroups", TryRefused<SYS_setgroups>},
    {"write /", WriteRoot},
    {"write /proc/sys/kernel/core_pattern",
     [] { return sys::TryOpen("/proc/sys/kernel/core_pattern", O_WRONLY); }},
    {"write /proc/self/comm", WriteOwnName},
    // Landlock's row: the filter lets it through.
    {"signal init", [] { return sys::TrySyscall(SYS_kill, kInitPid, 0); }},
};

}  // namespace

Result<Attempted> AttemptDeniedCall(std::string_view name, std::span<const sock_filter> filter) {
  FilterOfJob() = {filter, 0};
  for (const Attempt& attempt : kAttempts) {
    if (attempt.name != name) continue;
    Attempted attempted;
    attempted.result = attempt.make();
    attempted.by_filter = FilterOfJob().answer;
    return attempted;
  }
  return Error(Kind::kInternal, Text("no attempt for the denied call '", name, "'"));
}

}  // namespace taskcell::init
