// Process 1 of the cell: its memory, descriptors, program and life. It holds the gate.
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/memory.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "init";
constexpr int kInit = 1;
constexpr long kPidfdOpen = 434;
constexpr long kPidfdGetfd = 438;
// In the control process 1 is a copy of this very process, with this at the same place.
const char kMarker[] = "read me";
// Shared between process 1 and its children, in the control alone.
volatile char* signals_noticed = nullptr;

template <const char* kName, int kFlags>
Attempted OpenOfInit(const Targets& /*targets*/) {
  return TryOpening(Text("/proc/1/", kName), kFlags);
}
constexpr char kRoot[] = "root";
constexpr char kCwd[] = "cwd";
constexpr char kDescriptors[] = "fd";
constexpr char kMemory[] = "mem";
constexpr char kEnvironment[] = "environ";
constexpr char kMaps[] = "maps";

// CVE-2019-5736: whoever opens the runtime's own program can write it once it no longer runs.
// ETXTBSY therefore is no defence; a mount that nobody can write to is, of which the kernel would
// speak only afterwards.
Attempted TakeProgram(const char* path) {
  int64_t opened = OpenFile(path, O_PATH);
  if (opened < 0) return Of(opened, path);
  UniqueFd program(static_cast<int>(opened));
  Attempted written = TryOpening(Text("/proc/self/fd/", program.get()), O_WRONLY);
  if (written.result != ETXTBSY) return written;
  struct statfs mounted = {};
  if (Call(SYS_fstatfs, program.get(), &mounted) == 0 && (mounted.f_flags & ST_RDONLY) != 0)
    return {EROFS, Text(path, " runs, and is on a read-only mount")};
  return {0, Text(path, " can be written as soon as it ends")};
}
Attempted TakeInitProgram(const Targets& /*targets*/) { return TakeProgram("/proc/1/exe"); }
Attempted TakeOwnProgram(const Targets& /*targets*/) { return TakeProgram("/proc/self/exe"); }

Attempted WriteIntoOutput(const Targets& /*targets*/) {
  Attempted last;
  for (int fd = 0; fd <= 9; ++fd) {
    last = TryOpening(Text("/proc/1/fd/", fd), O_WRONLY);
    if (last.result == 0) return last;
  }
  return last;
}

// The job's parent is process 1 of the cell, through which its output goes.
Attempted WriteIntoParent(const Targets& /*targets*/) {
  int64_t parent = Call(SYS_getppid);
  Attempted last;
  for (int fd = 0; fd <= 9; ++fd) {
    last = TryOpening(Text("/proc/", parent, "/fd/", fd), O_WRONLY);
    if (last.result == 0) return last;
  }
  return last;
}

Attempted Trace(const Targets& /*targets*/) {
  return Of(Call(SYS_ptrace, PTRACE_SEIZE, kInit, 0, 0));
}

Attempted ReadMemory(const Targets& /*targets*/) {
  char byte = 0;
  struct iovec here = {&byte, 1};
  struct iovec there = {const_cast<char*>(kMarker), 1};
  int64_t answer = Call(SYS_process_vm_readv, kInit, &here, 1, &there, 1, 0);
  // Nothing there is said only to whoever may read.
  return answer == -EFAULT ? Attempted{} : Of(answer);
}

Attempted WriteMemory(const Targets& /*targets*/) {
  static char place = 0;
  struct iovec here = {&place, 1};
  struct iovec there = {&place, 1};
  int64_t answer = Call(SYS_process_vm_writev, kInit, &here, 1, &there, 1, 0);
  return answer == -EFAULT ? Attempted{} : Of(answer);
}

Attempted TakeDescriptors(const Targets& /*targets*/) {
  int64_t opened = Call(kPidfdOpen, kInit, 0);
  if (opened < 0) return Of(opened, "pidfd_open");
  UniqueFd init(static_cast<int>(opened));
  Attempted last;
  for (int fd = 0; fd < 64; ++fd) {
    int64_t taken = Call(kPidfdGetfd, init.get(), fd, 0);
    last = Of(taken, "pidfd_getfd");
    if (taken < 0) continue;
    UniqueFd closes_it(static_cast<int>(taken));
    return last;
  }
  return last;
}

Attempted ChangeLimits(const Targets& /*targets*/) {
  struct rlimit limit = {};
  return Of(Call(SYS_prlimit64, kInit, RLIMIT_NOFILE, 0, &limit));
}

Attempted Compare(const Targets& /*targets*/) {
  constexpr int kVirtualMemory = 1;
  return Of(Call(SYS_kcmp, kInit, kInit, kVirtualMemory, 0, 0));
}

// Where signals get as far as that, process 1 has to take no notice of any: this process lives on.
Attempted WasNoticed() {
  struct timespec pause = {0, 100'000'000};
  (void)Call(SYS_nanosleep, &pause, 0);
  bool noticed = signals_noticed != nullptr && *signals_noticed != 0;
  return noticed ? Attempted{} : Attempted{kNoEffect};
}

Attempted Signal(const Targets& /*targets*/) {
  for (int signal : {SIGTERM, SIGHUP, SIGINT, SIGCHLD, SIGUSR1, SIGSTOP, SIGKILL}) {
    int64_t answer = Call(SYS_kill, kInit, signal);
    if (answer < 0) return Of(answer);
  }
  return WasNoticed();
}

// As if process 1 had made a fault, or wanted to end itself: also to its one thread alone.
Attempted FeignFault(const Targets& /*targets*/) {
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) {
    int64_t answer = Call(SYS_kill, kInit, signal);
    if (answer == 0) answer = Call(SYS_tgkill, kInit, kInit, signal);
    if (answer < 0) return Of(answer);
  }
  return WasNoticed();
}

void Notice(int /*signal*/) { *signals_noticed = 1; }

constexpr Control kOutsideInit = Control::kNamespace;

// ENOENT: /proc does not even show a process that may not be looked into (hidepid).
constexpr Payload kPayloads[] = {
    {"init-root",
     kTopic,
     "enter the root of process 1",
     kOutsideInit,
     {ENOENT, EACCES},
     OpenOfInit<kRoot, O_RDONLY | O_DIRECTORY>},
    {"init-working-directory",
     kTopic,
     "enter the working directory of process 1",
     kOutsideInit,
     {ENOENT, EACCES},
     OpenOfInit<kCwd, O_RDONLY | O_DIRECTORY>},
    {"init-descriptors",
     kTopic,
     "list the descriptors of process 1",
     kOutsideInit,
     {ENOENT, EACCES},
     OpenOfInit<kDescriptors, O_RDONLY | O_DIRECTORY>},
    {"init-output",
     kTopic,
     "write into the descriptors of process 1 (forged output)",
     kOutsideInit,
     {ENOENT, EACCES},
     WriteIntoOutput},
    {"parent-output",
     kTopic,
     "write into the descriptors of its parent (forged output)",
     Control::kUser,
     {ENOENT, EACCES},
     WriteIntoParent,
     Way::kFirst},
    {"init-memory-file",
     kTopic,
     "open the memory of process 1",
     kOutsideInit,
     {ENOENT, EACCES},
     OpenOfInit<kMemory, O_RDWR>},
    {"init-environment",
     kTopic,
     "read the environment of process 1",
     kOutsideInit,
     {ENOENT, EACCES},
     OpenOfInit<kEnvironment, O_RDONLY>},
    {"init-maps",
     kTopic,
     "read where process 1 has what in its memory",
     kOutsideInit,
     {ENOENT, EACCES},
     OpenOfInit<kMaps, O_RDONLY>},
    {"cve-2019-5736-init-program",
     kTopic,
     "overwrite the program of process 1",
     kOutsideInit,
     {ENOENT, EACCES},
     TakeInitProgram},
    {"cve-2019-5736-own-program",
     kTopic,
     "overwrite the program it was started from",
     Control::kUser,
     {EROFS, EACCES},
     TakeOwnProgram},
    {"trace-init", kTopic, "trace process 1", kOutsideInit, {EPERM}, Trace},
    {"read-init-memory", kTopic, "read the memory of process 1", kOutsideInit, {EPERM}, ReadMemory},
    {"write-init-memory",
     kTopic,
     "write the memory of process 1",
     kOutsideInit,
     {EPERM},
     WriteMemory},
    {"take-init-descriptors",
     kTopic,
     "take descriptors of process 1 by its pidfd",
     kOutsideInit,
     {EPERM},
     TakeDescriptors},
    {"limits-of-init",
     kTopic,
     "read or change the limits of process 1",
     kOutsideInit,
     {EPERM},
     ChangeLimits},
    {"compare-init",
     kTopic,
     "find kernel addresses by comparing process 1 (kcmp)",
     kOutsideInit,
     {EPERM},
     Compare},
    // Landlock since ABI 6 lets no signal out of the job.
    {"signal-init",
     kTopic,
     "end, stop or disturb process 1 by signals",
     kOutsideInit,
     {EPERM, kNoEffect},
     Signal},
    {"end-init-by-its-own-faults",
     kTopic,
     "make process 1 kill itself by the signals of its own faults",
     kOutsideInit,
     {EPERM, kNoEffect},
     FeignFault},
};

}  // namespace

Status NoticeSignals() {
  constexpr std::size_t kBytes = 4096;
  static sys::Memory shared = TRY(sys::MapMemory(kBytes, true));
  signals_noticed = shared.bytes().data();
  struct sigaction action = {};
  action.sa_handler = Notice;
  if (::sigaction(SIGUSR1, &action, nullptr) == 0 && ::sigaction(SIGABRT, &action, nullptr) == 0)
    return Ok();
  return Error(Kind::kInternal, "sigaction");
}

std::span<const Payload> InitPayloads() { return kPayloads; }

}  // namespace taskcell::attack
