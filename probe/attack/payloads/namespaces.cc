// New namespaces, and those of others: whoever makes a user namespace has every capability in it.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
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

// What can be opened must not be entered either: what then becomes of it is the outcome.
Attempted EnterNamespaceOfInit(const Targets& /*targets*/) {
  Attempted at_open;
  for (const char* name : {"net", "ipc", "uts", "cgroup", "mnt"}) {
    const std::string path = Text("/proc/1/ns/", name);
    int64_t opened = OpenFile(path, O_RDONLY);
    if (opened >= 0) {
      UniqueFd ns(static_cast<int>(opened));
      return Of(Call(SYS_setns, ns.get(), 0), path);
    }
    at_open = Of(opened, path);
  }
  return at_open;
}

// A child with a user namespace of its own or, where none can be made, in that of this process,
// which the kernel would refuse with EINVAL. It hands its file over by `pair`, and stays.
Result<sys::Child> StartWithUserNamespace(const sys::SocketPair& pair) {
  Result<sys::Cloned> cloned = sys::CloneProcess(CLONE_NEWUSER);
  if (!cloned.ok()) cloned = sys::CloneProcess(0);
  if (!cloned.ok()) return std::move(cloned).error();
  if (!cloned->in_child) return std::move(cloned->child);
  UniqueFd ns(static_cast<int>(std::max(OpenFile("/proc/self/ns/user", O_RDONLY), int64_t{-1})));
  // ignoring: a parent that is gone
  (void)sys::SendPacket(pair.second.get(), "n", ns.get());
  while (true) (void)sys::PollAll({}, -1);  // ignoring: a wait only
}

// By its file in /proc, or by the descriptor that comes over the socket.
template <bool kPassed>
Attempted EnterUserNamespace(const Targets& /*targets*/) {
  Result<sys::SocketPair> pair = sys::MakePacketPair();
  if (!pair.ok()) return {pair.error().err, pair.error().text};
  Result<sys::Child> child = StartWithUserNamespace(pair.value());
  if (!child.ok()) return {child.error().err, child.error().text};
  char byte = 0;
  Result<sys::Packet> packet = sys::ReceivePacket(pair->first.get(), {&byte, 1}, true);
  if (!packet.ok()) return {packet.error().err, packet.error().text};
  UniqueFd ns = std::move(packet->passed);
  if (!kPassed) {
    int64_t opened = OpenFile(Text("/proc/", child->pid(), "/ns/user"), O_RDONLY);
    if (opened < 0) return Of(opened);
    ns = UniqueFd(static_cast<int>(opened));
  }
  return Of(Call(SYS_setns, ns.get(), CLONE_NEWUSER));
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
    {"enter-user-namespace",
     kTopic,
     "enter the user namespace of its own child by its file",
     Control::kUser,
     {EPERM},
     EnterUserNamespace<false>},
    {"enter-passed-namespace",
     kTopic,
     "enter a user namespace by a descriptor that came over a socket",
     Control::kUser,
     {EPERM},
     EnterUserNamespace<true>},
    {"enter-namespace-of-init",
     kTopic,
     "enter a namespace of process 1 by its file",
     kOutsideRoot,
     {ENOENT, EACCES},
     EnterNamespaceOfInit},
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
