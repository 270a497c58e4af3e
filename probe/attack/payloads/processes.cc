// Processes outside of the cell, and what a process may make of itself.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cerrno>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/socket.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "processes";
constexpr long kPidfdOpen = 434;
constexpr long kPidfdGetfd = 438;
constexpr long kProcessMadvise = 440;

Attempted SignalOutside(const Targets& targets) {
  return Of(Call(SYS_kill, targets.victim, SIGCONT));
}

Attempted SignalByPidfd(const Targets& targets) {
  int64_t opened = Call(kPidfdOpen, targets.victim, 0);
  UniqueFd closes_it(opened < 0 ? -1 : static_cast<int>(opened));
  return Of(opened, "pidfd_open");
}

Attempted TraceOutside(const Targets& targets) {
  return Of(Call(SYS_ptrace, PTRACE_SEIZE, targets.victim, 0, 0));
}

template <long kNumber>
Attempted CopyMemory(const Targets& targets) {
  char byte = 0;
  struct iovec here = {&byte, 1};
  struct {
    uint64_t base;
    uint64_t size;
  } there = {targets.victim_address, 1};
  int64_t answer = Call(kNumber, targets.victim, &here, 1, &there, 1, 0);
  return answer == -EFAULT ? Attempted{} : Of(answer);
}

Attempted LimitOutside(const Targets& targets) {
  struct rlimit limit = {};
  return Of(Call(SYS_prlimit64, targets.victim, RLIMIT_NOFILE, 0, &limit));
}

Attempted PinOutside(const Targets& targets) {
  uint64_t processors = 0;
  return Of(Call(SYS_sched_getaffinity, targets.victim, sizeof processors, &processors));
}

Attempted AdviseMemory(const Targets& /*targets*/) {
  constexpr int kCold = 20;
  int64_t opened = Call(kPidfdOpen, Call(SYS_getpid), 0);
  if (opened < 0) return Of(opened, "pidfd_open");
  UniqueFd self(static_cast<int>(opened));
  constexpr std::size_t kPage = 65536;  // of the largest kind there is
  alignas(kPage) static char page[kPage] = {};
  struct iovec range = {page, sizeof page};
  return Of(Call(kProcessMadvise, self.get(), &range, 1, kCold, 0));
}

// The process on the other side of `socket`: a descriptor of it or -errno.
int64_t OpenPeer(int socket) {
  constexpr int kPeerPidfd = 77;
  int pidfd = -1;
  uint32_t size = sizeof pidfd;
  int64_t answer = Call(SYS_getsockopt, socket, SOL_SOCKET, kPeerPidfd, &pidfd, &size);
  if (answer == 0) return pidfd;
  if (answer != -ENOPROTOOPT) return answer;
  struct ucred peer = {};  // before Linux 6.5
  size = sizeof peer;
  answer = Call(SYS_getsockopt, socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return answer < 0 ? answer : Call(kPidfdOpen, peer.pid, 0);
}

// The gateway's descriptors: the socket's other side is the process to take them from.
Attempted TakeFromPeer(const Targets& /*targets*/) {
  Result<sys::SocketPair> pair = sys::MakePacketPair();
  if (!pair.ok()) return {pair.error().err, "socketpair"};
  int64_t opened = OpenPeer(pair->first.get());
  if (opened < 0) return Of(opened, "the peer's pidfd");
  UniqueFd peer(static_cast<int>(opened));
  int64_t taken = Call(kPidfdGetfd, peer.get(), 0, 0);
  UniqueFd closes_it(taken < 0 ? -1 : static_cast<int>(taken));
  return Of(taken, "pidfd_getfd");
}

Attempted BeRealTime(const Targets& /*targets*/) {
  struct sched_param parameters = {};
  parameters.sched_priority = 1;
  return Of(Call(SYS_sched_setscheduler, 0, SCHED_FIFO, &parameters));
}

Attempted BeFirst(const Targets& /*targets*/) {
  constexpr int kHighest = -20;
  return Of(Call(SYS_setpriority, PRIO_PROCESS, 0, kHighest));
}

Attempted RaiseDescriptors(const Targets& targets) {
  struct rlimit limit = {targets.nofile * 2, targets.nofile * 2};
  return Of(Call(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, 0));
}

Attempted AllowCores(const Targets& /*targets*/) {
  struct rlimit limit = {0, 0};
  return Of(Call(SYS_setrlimit, RLIMIT_CORE, &limit));
}

// ESRCH: in the cell's pid namespace there is no such process. EPERM: the filter knows better.
constexpr Payload kPayloads[] = {
    {"signal-outside", kTopic, "signal a process outside", Control::kUser, {ESRCH}, SignalOutside},
    {"open-process-outside",
     kTopic,
     "open a process outside by its pid",
     Control::kUser,
     {ESRCH},
     SignalByPidfd},
    {"trace-outside", kTopic, "trace a process outside", Control::kUser, {EPERM}, TraceOutside},
    {"read-memory-outside",
     kTopic,
     "read the memory of a process outside",
     Control::kUser,
     {EPERM},
     CopyMemory<SYS_process_vm_readv>},
    {"limits-outside",
     kTopic,
     "read the limits of a process outside",
     Control::kUser,
     {EPERM},
     LimitOutside},
    {"pin-outside",
     kTopic,
     "see which processors a process outside runs on",
     Control::kUser,
     {ESRCH},
     PinOutside},
    {"take-from-peer",
     kTopic,
     "take descriptors of the process behind a socket",
     Control::kUser,
     {EPERM},
     TakeFromPeer},
    {"advise-memory",
     kTopic,
     "advise the kernel on another process's memory",
     Control::kRoot,
     {EPERM},
     AdviseMemory},
    {"real-time",
     kTopic,
     "run before every other process of the machine",
     Control::kRoot,
     {EPERM},
     BeRealTime},
    {"highest-priority", kTopic, "raise its priority", Control::kRoot, {EACCES, EPERM}, BeFirst},
    {"raise-descriptors",
     kTopic,
     "raise its limit of open descriptors",
     Control::kRoot,
     {EPERM},
     RaiseDescriptors},
    {"core-limit", kTopic, "change its limit of core dumps", Control::kUser, {EPERM}, AllowCores},
};

}  // namespace

std::span<const Payload> ProcessPayloads() { return kPayloads; }

}  // namespace taskcell::attack
