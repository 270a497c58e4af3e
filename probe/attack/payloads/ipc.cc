// Objects that live outside of every process: sockets by name, System V and POSIX objects, keys,
// and the gate.
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/socket.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "ipc";

Attempted ConnectTo(std::string_view name, int type) {
  Result<UniqueFd> socket = sys::MakeSocket(AF_UNIX, type);
  if (!socket.ok()) return {socket.error().err, "socket"};
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return {ENAMETOOLONG};
  name.copy(address.sun_path, name.size());
  auto size = static_cast<uint32_t>(offsetof(struct sockaddr_un, sun_path) + name.size() +
                                    (name.starts_with('\0') ? 0 : 1));
  return Of(Call(SYS_connect, socket->get(), &address, size));
}

Attempted ConnectAbstract(const Targets& targets) {
  return ConnectTo(std::string(1, '\0') + targets.abstract_socket, SOCK_STREAM);
}

Attempted ConnectPath(const Targets& targets) { return ConnectTo(targets.socket, SOCK_STREAM); }

// Where an engine's cell found its gate, and any other place it may be known by.
Attempted ConnectGate(const Targets& targets) {
  Attempted last;
  for (const std::string& path : {targets.gate, std::string("/run/taskcell/gate.d/gate"),
                                  std::string("/run/taskcell/gate")}) {
    last = ConnectTo(path, SOCK_SEQPACKET);
    if (last.result == 0) return {0, path};
  }
  return last;
}

// Into every socket that is open: one of them is the gate, if any is.
Attempted WriteJunkToGate(const Targets& /*targets*/) {
  constexpr int kMostDescriptors = 256;
  constexpr std::string_view kJunk = "\xff\xff\xff\xff junk that no frame starts with";
  for (int fd = 3; fd < kMostDescriptors; ++fd) {
    int64_t sent =
        Call(SYS_sendto, fd, kJunk.data(), kJunk.size(), MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
    if (sent > 0) return {0, Text("descriptor ", fd)};
  }
  return {EBADF, "no socket is open"};
}

Attempted AttachSharedMemory(const Targets& targets) {
  return Of(Call(SYS_shmget, targets.ipc_key, 0, 0));
}

Attempted OpenMessages(const Targets& targets) { return Of(Call(SYS_msgget, targets.ipc_key, 0)); }

Attempted OpenSemaphores(const Targets& targets) {
  return Of(Call(SYS_semget, targets.ipc_key, 0, 0));
}

Attempted OpenQueue(const Targets& targets) {
  int64_t opened = Call(SYS_mq_open, targets.queue.c_str(), O_RDWR | O_CLOEXEC, 0, 0);
  UniqueFd closes_it(opened < 0 ? -1 : static_cast<int>(opened));
  return Of(opened);
}

Attempted OpenSharedFile(const Targets& targets) { return TryReading(targets.shared_file); }

Attempted FindUserKeyring(const Targets& /*targets*/) {
  return Of(Call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1));
}

Attempted FindSessionKeyring(const Targets& /*targets*/) {
  return Of(Call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
}

Attempted AddKey(const Targets& /*targets*/) {
  return Of(Call(SYS_add_key, "user", "taskcell-attack", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

constexpr Payload kPayloads[] = {
    {"abstract-socket",
     kTopic,
     "connect to an abstract unix socket of the host",
     Control::kUser,
     // EPERM: Landlock since ABI 6.
     {ECONNREFUSED, EPERM},
     ConnectAbstract},
    {"path-socket",
     kTopic,
     "connect to a unix socket of the host by its path",
     Control::kUser,
     {ENOENT},
     ConnectPath},
    {"gate-connect", kTopic, "connect to the gate after go", Control::kUser, {ENOENT}, ConnectGate},
    {"gate-junk", kTopic, "write junk to the gate", Control::kUser, {EBADF}, WriteJunkToGate},
    {"shared-memory",
     kTopic,
     "attach System V shared memory of the host",
     Control::kUser,
     {ENOENT},
     AttachSharedMemory},
    {"messages",
     kTopic,
     "open a System V message queue of the host",
     Control::kUser,
     {ENOENT},
     OpenMessages},
    {"semaphores",
     kTopic,
     "open System V semaphores of the host",
     Control::kUser,
     {ENOENT},
     OpenSemaphores},
    {"posix-queue",
     kTopic,
     "open a POSIX message queue of the host",
     Control::kUser,
     {ENOENT},
     OpenQueue},
    {"posix-shared-memory",
     kTopic,
     "read POSIX shared memory of the host",
     Control::kUser,
     {ENOENT},
     OpenSharedFile},
    {"user-keyring", kTopic, "find the keys of its user", Control::kUser, {EPERM}, FindUserKeyring},
    {"session-keyring",
     kTopic,
     "find the keys of the session it was started from",
     Control::kUser,
     {EPERM},
     FindSessionKeyring},
    {"add-key", kTopic, "store a key in the kernel", Control::kUser, {EPERM}, AddKey},
};

}  // namespace

std::span<const Payload> IpcPayloads() { return kPayloads; }

}  // namespace taskcell::attack
