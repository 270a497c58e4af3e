#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// socket(2) with SOCK_CLOEXEC.
Result<UniqueFd> MakeSocket(int domain, int type, int protocol = 0);

struct SocketPair {
  UniqueFd first;
  UniqueFd second;
};
// socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC).
Result<SocketPair> MakePacketPair();

// Binds a SOCK_SEQPACKET socket at `path` (at most 107 bytes) and listens; mode 0666 is the
// caller's to set.
Result<UniqueFd> ListenPackets(const std::string& path);

// Connects a SOCK_SEQPACKET or SOCK_STREAM unix socket to `path`.
Result<UniqueFd> ConnectUnix(const std::string& path, int type);

// accept4(SOCK_CLOEXEC).
Result<UniqueFd> Accept(int listener);

// SO_PEERCRED: the ids a unix peer had when it connected.
Result<struct ucred> PeerCredentials(int fd);

// getpeername(2) of a unix socket: the path its peer is bound to, empty where it has none.
Result<std::string> PeerPath(int fd);

// Listens on 127.0.0.1 with a port of the kernel's choice.
struct LoopbackListener {
  UniqueFd fd;
  uint16_t port;
};
Result<LoopbackListener> ListenLoopback();

// Sends one packet; `pass_fd` (or -1) travels with it. MSG_NOSIGNAL; EAGAIN is returned as an Error
// with that err.
Status SendPacket(int fd, std::string_view packet, int pass_fd = -1);

// The same with several descriptors, at most kMostDescriptors of them.
inline constexpr std::size_t kMostDescriptors = 16;
Status SendDescriptors(int fd, std::string_view packet, std::span<const int> passed);

struct Packet {
  std::size_t size = 0;            // 0: the peer closed
  UniqueFd passed;                 // the one descriptor, where `want_fd` and one came
  bool control_discarded = false;  // more came along than was taken
};
// Receives one packet into `buffer`. A packet that does not fit is kViolation. Without `want_fd` no
// control buffer is given, so a descriptor the peer sends is discarded by the kernel; with it
// exactly one is taken, CLOEXEC.
Result<Packet> ReceivePacket(int fd, std::span<char> buffer, bool want_fd);

// The same for several descriptors: as many as `passed` has places, at most kMostDescriptors, are
// taken into it in their order. Places nothing came for stay as they are.
Result<Packet> ReceivePacketWith(int fd, std::span<char> buffer, std::span<UniqueFd> passed);

// Receives one packet that SendDescriptors sent: its size (0: the peer closed), with the
// descriptors, CLOEXEC, in `passed`. A packet that does not fit is kViolation. For a peer that is
// trusted: however many it sends, they are taken.
Result<std::size_t> ReceiveDescriptors(int fd, std::span<char> buffer,
                                       std::vector<UniqueFd>& passed);

// poll(2) on one descriptor; returns revents, 0 on time-out. timeout_ms -1 waits for ever. EINTR
// retried.
Result<short> Poll(int fd, short events, int timeout_ms);

}  // namespace taskcell::sys
