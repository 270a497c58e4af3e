#include "probe/attack/attacker/control.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr uid_t kNobody = 65534;

// What an ordinary user is: for root, nobody, with one group where that is what is tried.
Status BecomeUser(std::span<const gid_t> groups) {
  if (::geteuid() != 0) return Ok();
  TRY(sys::SetGroups(groups));
  TRY(sys::SetIds(kNobody, kNobody));
  // The change of ids took it away; without it the process could not map its own ids.
  return sys::SetDumpable();
}

Status WriteOwnFile(const char* path, std::string_view text) {
  UniqueFd file = TRY(sys::Open(path, O_WRONLY));
  return sys::WriteAll(file.get(), text);
}

Status MakeNamespaces() {
  uid_t uid = ::geteuid();
  gid_t gid = ::getegid();
  TRY(sys::Unshare(kNamespaces));
  TRY(WriteOwnFile("/proc/self/setgroups", "deny"));
  TRY(WriteOwnFile("/proc/self/uid_map", Text("0 ", uid, " 1")));
  TRY(WriteOwnFile("/proc/self/gid_map", Text("0 ", gid, " 1")));
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (!cloned.in_child) {
    sys::ExitInfo ended = TRY(cloned.child.Wait());
    sys::ExitNow(ended.signal != 0 ? 128 + ended.signal : ended.status);
  }
  TRY(sys::SetParentDeathSignal(SIGKILL));
  TRY(sys::MakeAllMountsPrivate());
  int64_t mounted = Call(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0);
  if (mounted < 0)
    return Error(Kind::kUnsupported, "no proc of its own", static_cast<int>(-mounted));
  TRY(NoticeSignals());
  return sys::SetLoopbackUp();
}

}  // namespace

Status TakeControlsPlace(Control control) {
  switch (control) {
    case Control::kUser:
      return BecomeUser({});
    case Control::kGroup: {
      if (::geteuid() != 0)
        return Error(Kind::kDenied, "root alone gives a process a group", EPERM);
      const gid_t group = kControlGroup;
      return BecomeUser({&group, 1});
    }
    case Control::kNamespace:
      TRY(BecomeUser({}));
      return MakeNamespaces();
    case Control::kRoot:
      if (::geteuid() != 0) return Error(Kind::kDenied, "it takes root to show it", EPERM);
      TRY(sys::Unshare(CLONE_NEWNS));
      return sys::MakeAllMountsPrivate();
  }
  return Error(Kind::kInternal, "an unknown control");
}

Status BeVictim(int out) {
  static const char kSecret[] = "what another process must not read";
  TRY(BecomeUser({}));
  TRY(sys::SetParentDeathSignal(SIGKILL));
  // ignoring: there is nothing to lift where the kernel has no such rule
  (void)Call(SYS_prctl, PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  TRY(sys::WriteAll(out, Text(sys::Address(kSecret), "\n")));
  while (true) (void)sys::PollAll({}, -1);  // ignoring: a wait only
}

}  // namespace taskcell::attack
