#include "launcher/sys/job_control.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"

// NOLINTBEGIN(concurrency-mt-unsafe): init and the launcher, who use these, have one thread
namespace taskcell::sys {
namespace {

// As in <linux/ioprio.h>, which since Linux 6.6 is no C++ ("int class").
constexpr int kIoPriorityOfProcess = 1;
constexpr uint32_t kIoClassRealTime = 1;
constexpr int kIoClassShift = 13;

Status Kill(pid_t target, int signal, std::string_view what) {
  if (::kill(target, signal) == 0) return Ok();
  int err = errno;
  if (err == ESRCH) return Ok();
  return FailureOf(err, Text("kill ", what, " with signal ", signal));
}

// After an exec a signal has its default disposition or is ignored. Which are, as a mask whose
// lowest bit is signal 1; all, where that cannot be known.
uint64_t IgnoredSignals() {
  constexpr uint64_t kAll = ~uint64_t{0};
  constexpr std::size_t kMaxStatusBytes = 64U << 10U;
  constexpr std::string_view kName = "\nSigIgn:\t";
  Result<std::string> status = ReadFile(AT_FDCWD, "/proc/self/status", kMaxStatusBytes);
  if (!status.ok()) return kAll;
  const std::size_t found = status->find(kName);
  if (found == status->npos) return kAll;
  const char* first = status->data() + found + kName.size();
  const char* last = status->data() + status->size();
  uint64_t mask = 0;
  auto [end, fault] = std::from_chars(first, last, mask, 16);
  return fault == std::errc() && end != last && *end == '\n' ? mask : kAll;
}

}  // namespace

Status TakeSignals() {
  const uint64_t ignored = IgnoredSignals();
  for (int signal = 1; signal < NSIG; ++signal) {
    if ((ignored >> static_cast<unsigned>(signal - 1) & 1) == 0) continue;
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    // ignoring: the two signals that glibc keeps to itself answer EINVAL
    (void)::signal(signal, SIG_DFL);
  }
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigaddset(&blocked, SIGPIPE);
  if (::sigprocmask(SIG_SETMASK, &blocked, nullptr) < 0) return Failure("sigprocmask");
  return Ok();
}

Status IgnoreSignal(int signal) {
  if (::signal(signal, SIG_IGN) == SIG_ERR) return Failure(Text("signal ", signal, " SIG_IGN"));
  return Ok();
}

Status ReleaseSignals() {
  sigset_t none;
  sigemptyset(&none);
  if (::sigprocmask(SIG_SETMASK, &none, nullptr) < 0) return Failure("sigprocmask");
  return Ok();
}

Result<UniqueFd> MakeChildSignalFd() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return Failure("signalfd");
  return UniqueFd(fd);
}

void DrainSignals(int signal_fd) {
  struct signalfd_siginfo info;
  // SIGCHLD is one pending bit, not a queue: two reads empty it.
  while (::read(signal_fd, &info, sizeof info) == sizeof info) {
  }
}

Status StartSession() {
  if (::setsid() < 0) return Failure("setsid");
  return Ok();
}

Status StartGroup() {
  if (::setpgid(0, 0) < 0) return Failure("setpgid 0 0");
  return Ok();
}

Status SignalAll(int signal) {
  if (::getpid() != 1) {
    return Error(Kind::kInternal, "kill of every process by another than process 1", EPERM);
  }
  return Kill(-1, signal, "every process");
}

Status AdoptOrphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) return Failure("prctl CHILD_SUBREAPER");
  return Ok();
}

Status ResetModes() {
  constexpr mode_t kUmask = 022;
  (void)::umask(kUmask);  // ignoring: the mask before; it cannot fail
  if (::personality(PER_LINUX) < 0) return Failure("personality PER_LINUX");
  return Ok();
}

Result<Scheduling> OwnScheduling() {
  Scheduling own;
  int policy = ::sched_getscheduler(0);
  if (policy < 0) return Failure("sched_getscheduler");
  own.policy = static_cast<uint32_t>(policy & ~SCHED_RESET_ON_FORK);
  long priority = ::syscall(SYS_ioprio_get, kIoPriorityOfProcess, 0);
  // Only who had CAP_SYS_ADMIN or CAP_SYS_NICE can have given the class of real time.
  if (priority < 0 && (errno == ENOSYS || errno == EPERM)) return own;
  if (priority < 0) return Failure("ioprio_get");
  own.io_class = static_cast<uint32_t>(priority >> kIoClassShift);
  return own;
}

Status LeaveRealTime() {
  constexpr uint32_t kDeadline = 6;  // SCHED_DEADLINE, which glibc does not name
  Scheduling own = TRY(OwnScheduling());
  if (own.policy == SCHED_FIFO || own.policy == SCHED_RR || own.policy == kDeadline) {
    struct sched_param none = {};
    if (::sched_setscheduler(0, SCHED_OTHER, &none) < 0)
      return Failure("sched_setscheduler SCHED_OTHER");
  }
  if (own.io_class != kIoClassRealTime) return Ok();
  if (::syscall(SYS_ioprio_set, kIoPriorityOfProcess, 0, 0) < 0) return Failure("ioprio_set");
  return Ok();
}

uint32_t FileMask() {
  mode_t mask = ::umask(077);
  (void)::umask(mask);  // ignoring: what it was a moment ago
  return mask;
}

Result<uint32_t> TakePersonality() {
  int before = ::personality(PER_LINUX);
  if (before < 0) return Failure("personality PER_LINUX");
  return static_cast<uint32_t>(before);
}

Status SignalGroup(pid_t group, int signal) {
  if (group <= 1) return Error(Kind::kInternal, Text("kill of process group ", group));
  return Kill(-group, signal, Text("process group ", group));
}

bool IsGroup(pid_t group) { return group <= 1 || ::kill(-group, 0) == 0 || errno != ESRCH; }

Result<std::optional<ChildEvent>> NextChildEvent(bool& none_left) {
  siginfo_t info = {};
  none_left = false;
  if (::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) < 0) {
    int err = errno;
    none_left = err == ECHILD;
    if (none_left) return std::optional<ChildEvent>();
    return FailureOf(err, "waitid P_ALL");
  }
  if (info.si_pid == 0) return std::optional<ChildEvent>();
  ChildEvent event;
  event.pid = info.si_pid;
  event.stopped = info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED;
  bool exited = info.si_code == CLD_EXITED;
  event.status = exited ? info.si_status : 0;
  event.signal = exited ? 0 : info.si_status;
  return std::optional<ChildEvent>(event);
}

}  // namespace taskcell::sys
// NOLINTEND(concurrency-mt-unsafe)
