// New namespaces, and those of others: whoever makes a user namespace has every capability in it.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/process.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "namespaces";
constexpr uint64_t kTimeNamespace = 0x80;  // CLONE_NEWTIME
constexpr long kClone3 = 435;

Attempted CloneUserNamespace(const Targets& /*targets*/) { return {sys::TryClone(CLONE_NEWUSER)}; }

// The flags stand behind a pointer, where a filter cannot look.
Attempted HideFlagsInClone3(const Targets& /*targets*/) {
  struct clone_args arguments = {};
  arguments.flags = CLONE_NEWUSER;
  arguments.exit_signal = SIGCHLD;
  int64_t pid = Call(kClone3, &arguments, sizeof arguments);
  if (pid == 0) sys::ExitNow(0);
  return Of(pid);
}

// The upper half of a register that the kernel reads 32 bits of.
Attempted HideFlagsInUpperHalf(const Targets& /*targets*/) {
  constexpr uint64_t kUpper = uint64_t{1} << 32U;
  return {sys::TryClone(kUpper | CLONE_NEWUSER)};
}

Attempted EnterNamespace(const Targets& /*targets*/) {
  int64_t opened = OpenFile("/proc/self/ns/net", O_RDONLY);
  if (opened < 0) return Of(opened);
  UniqueFd ns(static_cast<int>(opened));
  return Of(Call(SYS_setns, ns.get(), 0));
}

// With a pidfd instead of a namespace's file: into all of them at once.
Attempted EnterNamespacesOfInit(const Targets& /*targets*/) {
  constexpr long kPidfdOpen = 434;
  int64_t opened = Call(kPidfdOpen, 1, 0);
  if (opened < 0) return Of(opened);
  UniqueFd init(static_cast<int>(opened));
  return Of(Call(SYS_setns, init.get(), CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC));
}

constexpr Control kOutsideRoot = Control::kNamespace;

constexpr Payload kPayloads[] = {
    {"user-namespace",
     kTopic,
     "make a user namespace",
     Control::kUser,
     {EPERM},
     Make<SYS_unshare, CLONE_NEWUSER>},
    {"user-namespace-by-clone",
     kTopic,
     "be born into a user namespace",
     Control::kUser,
     {EPERM},
     CloneUserNamespace},
    {"user-namespace-by-clone3",
     kTopic,
     "hide the flag for a user namespace behind clone3's pointer",
     Control::kUser,
     {ENOSYS},
     HideFlagsInClone3},
    {"user-namespace-upper-half",
     kTopic,
     "be born into a user namespace, with bits in the register that the kernel drops",
     Control::kUser,
     {EPERM},
     HideFlagsInUpperHalf},
    {"mount-namespace",
     kTopic,
     "make a mount namespace",
     kOutsideRoot,
     {EPERM},
     Make<SYS_unshare, CLONE_NEWNS>},
    {"pid-namespace",
     kTopic,
     "make a pid namespace",
     kOutsideRoot,
     {EPERM},
     Make<SYS_unshare, CLONE_NEWPID>},
    {"network-namespace",
     kTopic,
     "make a network namespace",
     kOutsideRoot,
     {EPERM},
     Make<SYS_unshare, CLONE_NEWNET>},
    {"ipc-namespace",
     kTopic,
     "make an ipc namespace",
     kOutsideRoot,
     {EPERM},
     Make<SYS_unshare, CLONE_NEWIPC>},
    {"uts-namespace",
     kTopic,
     "make a uts namespace",
     kOutsideRoot,
     {EPERM},
     Make<SYS_unshare, CLONE_NEWUTS>},
    {"cgroup-namespace",
     kTopic,
     "make a cgroup namespace",
     kOutsideRoot,
     {EPERM},
     Make<SYS_unshare, CLONE_NEWCGROUP>},
    {"time-namespace",
     kTopic,
     "make a time namespace",
     kOutsideRoot,
     {EPERM},
     Make<SYS_unshare, kTimeNamespace>},
    {"enter-namespace",
     kTopic,
     "enter a namespace by its file",
     kOutsideRoot,
     {EPERM},
     EnterNamespace},
    {"enter-namespaces-of-init",
     kTopic,
     "enter the namespaces of process 1 by its pidfd",
     kOutsideRoot,
     {EPERM},
     EnterNamespacesOfInit},
};

}  // namespace

std::span<const Payload> NamespacePayloads() { return kPayloads; }

}  // namespace taskcell::attack
