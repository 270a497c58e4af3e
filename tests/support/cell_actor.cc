// Plays a part in a cell, for tests. As the first process it does what the file /behaviour of its
// image says:
//   once         connects to the gate and stays
//   twice        connects two times and stays
//   child        a child connects, the first process stays
//   never        stays without connecting
//   die          ends at once
//   connect-die  connects and ends
//   half         sends the first part of an attestation and ends
//   oversized    sends a packet larger than a frame
//   order        sends a frame whose number is not the first
//   early        sends output before any attestation
//   share        listens on loopback, makes shared memory and a file in /dev/shm and stays
//   silent-job   attests to nothing true and never starts a job
// With arguments it is a job: `cat FILE`, `write FILE`, `fail STATUS`, `bomb STATUS` (as many
// processes as can be made, each writing without end and deaf to signals, then it ends).
#include <fcntl.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell {
namespace {

constexpr char kGate[] = "/run/taskcell/gate.d/gate";
constexpr unsigned kStaySeconds = 60;  // far longer than any test waits, and still an end

int Stay() {
  ::sleep(kStaySeconds);
  return 0;
}

UniqueFd Connect() {
  auto gate = sys::ConnectUnix(kGate, SOCK_SEQPACKET);
  return gate.ok() ? std::move(gate).value() : UniqueFd();
}

int SendAndStay(const std::string& packet) {
  UniqueFd gate = Connect();
  int size = 1 << 20;
  (void)::setsockopt(gate.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  (void)sys::SendPacket(gate.get(), packet);
  return Stay();
}

int ShareAndStay() {
  auto listener = sys::ListenLoopback();
  bool made = listener.ok() && ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0 &&
              sys::Open("/dev/shm/shared", O_WRONLY | O_CREAT, 0600).ok();
  return made ? Stay() : 1;
}

int ActFirst(std::string_view behaviour) {
  using cell::FrameType;
  if (behaviour == "die") return 1;
  if (behaviour == "never") return Stay();
  if (behaviour == "share") return ShareAndStay();
  if (behaviour == "connect-die") return Connect().valid() ? 0 : 1;
  if (behaviour == "oversized") return SendAndStay(std::string(cell::kMaxFrameBytes + 1, 'x'));
  if (behaviour == "order")
    return SendAndStay(cell::EncodeFrame({FrameType::kAttestation, true, 5, "x"}));
  if (behaviour == "early")
    return SendAndStay(cell::EncodeFrame({FrameType::kStdout, true, 0, "x"}));
  if (behaviour == "silent-job")
    return SendAndStay(
        cell::EncodeFrame({FrameType::kAttestation, true, 0, cell::EncodeAttestation({})}));
  if (behaviour == "child") {
    if (::fork() == 0) {
      UniqueFd gate = Connect();
      return Stay();
    }
    return Stay();
  }
  UniqueFd first = Connect();
  if (behaviour == "half") {
    std::string part(cell::kMaxFramePayload, 'x');
    (void)sys::SendPacket(first.get(),
                          cell::EncodeFrame({FrameType::kAttestation, false, 0, part}));
    // Until the host has taken the connection: then it removes the name.
    while (::access(kGate, F_OK) == 0) (void)::usleep(1000);
    return 0;
  }
  UniqueFd second = behaviour == "twice" ? Connect() : UniqueFd();
  return Stay();
}

[[noreturn]] void Flood() {
  for (int signal = 1; signal < NSIG; ++signal) (void)::signal(signal, SIG_IGN);
  (void)::setsid();
  for (;;) (void)sys::WriteAll(1, "still here\n");
}

int Bomb(const std::string& status) {
  for (pid_t child = 0; (child = ::fork()) >= 0;) {
    if (child == 0) Flood();
  }
  return static_cast<int>(ParseUnsigned(status).value_or(99));
}

int ActJob(std::string_view what, const std::string& argument) {
  if (what == "bomb") return Bomb(argument);
  if (what == "fail") return static_cast<int>(ParseUnsigned(argument).value_or(99));
  if (what == "write") {
    auto file = sys::Open(argument, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return file.ok() && sys::WriteAll(file->get(), "written\n").ok() ? 0 : 3;
  }
  auto text = sys::ReadFile(AT_FDCWD, argument, std::size_t{1} << 20U);
  if (!text.ok()) return 4;
  return sys::WriteAll(1, text.value()).ok() ? 0 : 5;
}

}  // namespace
}  // namespace taskcell

int main(int count, char** arguments) {
  if (count == 3 && arguments[1][0] != '-') return taskcell::ActJob(arguments[1], arguments[2]);
  auto behaviour = taskcell::sys::ReadFile(AT_FDCWD, "/behaviour", 64);
  return behaviour.ok() ? taskcell::ActFirst(taskcell::Trim(behaviour.value())) : 98;
}
