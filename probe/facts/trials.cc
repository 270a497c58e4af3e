#include "probe/facts/trials.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "launcher/base/text.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/other_process.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/seccomp_install.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/trial.h"
#include "probe/facts/trial_namespaces.h"

namespace taskcell::probe {
namespace {

constexpr int kTrialTimeoutMs = 2000;

Tried OutcomeOf(const Status& status) { return status.ok() ? Works() : Failed(status.error()); }

// No arguments: a kernel that has the call says EINVAL, and nothing is opened or made.
Tried TryOpenat2(const TrialGround&) {
  int err = sys::TrySyscall(SYS_openat2);
  return err == EINVAL ? Works() : Failed(err, "openat2");
}

Tried TryClone3(const TrialGround&) {
  int err = sys::TrySyscall(SYS_clone3);
  return err == EINVAL || err == EFAULT ? Works() : Failed(err, "clone3");
}

Tried TryIntoCgroup(const TrialGround& ground) {
  if (ground.cgroup_directory.empty())
    return Untried("no cgroup of the unified hierarchy is in sight");
  Result<UniqueFd> cgroup = sys::Open(ground.cgroup_directory, O_RDONLY | O_DIRECTORY);
  if (!cgroup.ok()) return Untried("the own cgroup cannot be opened");
  Result<sys::Cloned> cloned = sys::CloneProcess(0, cgroup->get());
  if (cloned.ok()) {
    if (cloned->in_child) sys::ExitNow(0);
    return Works();
  }
  int err = cloned.error().err;
  // The call was understood; whether this cgroup may be entered is a matter of its delegation.
  bool understood = err == EACCES || err == EBUSY || err == EOPNOTSUPP;
  return understood ? Works(Text("this cgroup may not be entered: ", ErrorName(err)))
                    : Failed(cloned.error());
}

Tried TryPidfd(const TrialGround&) {
  Result<UniqueFd> pidfd = sys::OpenPidfd(sys::OwnPid());
  return pidfd.ok() ? Works() : Failed(pidfd.error());
}

Tried TryCloseRange(const TrialGround&) {
  constexpr unsigned kUnused = 1U << 19U;
  int err = sys::TrySyscall(SYS_close_range, kUnused, kUnused, CLOSE_RANGE_CLOEXEC);
  return err == 0 ? Works() : Failed(err, "close_range");
}

Tried TryLandlock(const TrialGround&) {
  int64_t abi = sys::RawSyscall(SYS_landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi > 0) return Works(Text("ABI ", abi));
  return Failed(static_cast<int>(-abi), "not built in, off at boot, or hidden by a filter");
}

sock_filter AllowAll() { return {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}; }

Tried TryFilter(const TrialGround&) {
  Status privileges = sys::SetNoNewPrivileges();
  if (!privileges.ok()) return Failed(privileges.error());
  sock_filter allow = AllowAll();
  return OutcomeOf(sys::InstallSeccomp(&allow, 1));
}

Tried TryNotify(const TrialGround&) {
  sock_filter allow = AllowAll();
  sock_fprog program = {1, &allow};
  int err = sys::TrySyscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                            sys::Address(&program));
  // Only one filter of a process may have a listener: an outer one has it.
  if (err == EBUSY) return Works("a filter of this process has a listener already");
  return err == 0 ? Works() : Failed(err, "seccomp with a listener");
}

struct Attempt {
  const char* feature;
  Tried (*run)(const TrialGround&);
};

// The order matters: a filter needs no_new_privs, which the first one sets.
constexpr Attempt kPlain[] = {
    {"openat2", TryOpenat2},
    {"clone3", TryClone3},
    {"clone-into-cgroup", TryIntoCgroup},
    {"pidfd", TryPidfd},
    {"close-range", TryCloseRange},
    {"landlock", TryLandlock},
    {"seccomp-filter", TryFilter},
    {"seccomp-notify", TryNotify},
};

// The first makes the namespaces that the others need.
constexpr Attempt kInNamespaces[] = {
    {"user-namespace", TryUserNamespace},  {"mount-api", TryMountApi}, {"tmpfs", TryTmpfs},
    {"mount-setattr", TryMountAttributes}, {"overlay", TryOverlay},    {"proc", TryProc},
    {"proc-subset", TryProcSubset},
};

constexpr Attempt kDeep[] = {{"user-namespace-depth", TryUserNamespaceDepth}};

constexpr Attempt kAsRoot[] = {{"idmapped-mounts", TryIdMapped}};

// One result on its way from the child: fits a pipe's atomic write.
struct Message {
  int32_t outcome;
  int32_t err;
  std::array<char, 112> detail;
};

void Send(int fd, const Tried& tried) {
  Message message = {};
  message.outcome = static_cast<int32_t>(tried.outcome);
  message.err = tried.err;
  std::size_t length = std::min(tried.detail.size(), message.detail.size() - 1);
  std::memcpy(message.detail.data(), tried.detail.data(), length);
  // ignoring: the parent sees that nothing came
  (void)sys::WriteAll(fd, {reinterpret_cast<const char*>(&message), sizeof message});
}

std::optional<Tried> Receive(int fd) {
  Message message = {};
  std::span<char> buffer(reinterpret_cast<char*>(&message), sizeof message);
  Result<short> ready = sys::Poll(fd, POLLIN, kTrialTimeoutMs);
  if (!ready.ok() || ready.value() == 0) return std::nullopt;
  Result<std::size_t> got = sys::Read(fd, buffer);
  if (!got.ok() || got.value() != sizeof message) return std::nullopt;
  message.detail.back() = '\0';
  return Tried{static_cast<Outcome>(message.outcome), message.err, message.detail.data()};
}

[[noreturn]] void RunInChild(std::span<const Attempt> attempts, const TrialGround& ground, int fd) {
  for (const Attempt& attempt : attempts) Send(fd, attempt.run(ground));
  sys::ExitNow(0);
}

// Tries the rest in a new child where one was killed, since the others may still work.
std::vector<Trial> RunGroup(std::span<const Attempt> attempts, const TrialGround& ground) {
  std::vector<Trial> trials;
  auto add = [&](const Attempt& attempt, Tried tried) {
    trials.push_back({attempt.feature, tried.outcome, tried.err, std::move(tried.detail)});
  };
  while (trials.size() < attempts.size()) {
    std::span<const Attempt> rest = attempts.subspan(trials.size());
    Result<sys::Pipe> pipe = sys::MakePipe();
    Result<sys::Cloned> cloned =
        pipe.ok() ? sys::CloneProcess(0) : Result<sys::Cloned>(pipe.error());
    if (!cloned.ok()) {
      for (const Attempt& attempt : rest) add(attempt, Failed(cloned.error()));
      return trials;
    }
    if (cloned->in_child) RunInChild(rest, ground, pipe->write_end.get());
    pipe->write_end.Reset();
    while (trials.size() < attempts.size()) {
      std::optional<Tried> tried = Receive(pipe->read_end.get());
      if (!tried) break;
      add(attempts[trials.size()], *tried);
    }
    if (trials.size() == attempts.size()) break;
    (void)cloned->child.Signal(SIGKILL);  // ignoring: it has ended already, or is hung
    Result<sys::ExitInfo> ended = cloned->child.Wait();
    bool filtered = ended.ok() && ended->signal == SIGSYS;
    // What comes after this is to be tried, and told, all the same.
    if (filtered && attempts[trials.size()].run == TryOpenat2) sys::AvoidOpenat2();
    add(attempts[trials.size()],
        filtered ? Tried{Outcome::kForbidden, 0, "killed by a system call filter"}
                 : Untried("the trial did not end in time"));
  }
  return trials;
}

void Append(std::vector<Trial>& all, std::vector<Trial> more) {
  for (Trial& each : more) all.push_back(std::move(each));
}

}  // namespace

std::string ErrorName(int err) {
  const char* name = err == 0 ? nullptr : ::strerrorname_np(err);
  return name == nullptr ? std::string() : std::string(name);
}

std::vector<Trial> TryFeatures(const TrialGround& ground) {
  std::vector<Trial> trials = RunGroup(kPlain, ground);
  Append(trials, RunGroup(kInNamespaces, ground));
  Append(trials, RunGroup(kDeep, ground));
  Append(trials, RunGroup(kAsRoot, ground));
  return trials;
}

}  // namespace taskcell::probe
