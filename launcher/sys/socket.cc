#include "launcher/sys/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

Result<struct sockaddr_un> UnixAddress(const std::string& path) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path ||
      path.find('\0') != std::string::npos) {
    return Error(Kind::kUsage,
                 Text("unix socket path '", Printable(path),
                      "' must be 1 to 107 bytes without NUL, it has ", path.size()),
                 ENAMETOOLONG);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// The sockets API takes every address through this one type.
const struct sockaddr* Generic(const void* address) {
  return static_cast<const struct sockaddr*>(address);
}

}  // namespace

Result<UniqueFd> MakeSocket(int domain, int type, int protocol) {
  int fd = ::socket(domain, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return Failure(Text("socket domain ", domain, " type ", type));
  return UniqueFd(fd);
}

Result<SocketPair> MakePacketPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
    return Failure("socketpair");
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<UniqueFd> ListenPackets(const std::string& path) {
  struct sockaddr_un address = TRY(UnixAddress(path));
  UniqueFd fd = TRY(MakeSocket(AF_UNIX, SOCK_SEQPACKET));
  if (::bind(fd.get(), Generic(&address), sizeof address) < 0)
    return Failure(Text("bind '", Printable(path), "'"));
  if (::listen(fd.get(), 8) < 0) return Failure(Text("listen '", Printable(path), "'"));
  return fd;
}

Result<UniqueFd> ConnectUnix(const std::string& path, int type) {
  struct sockaddr_un address = TRY(UnixAddress(path));
  UniqueFd fd = TRY(MakeSocket(AF_UNIX, type));
  if (::connect(fd.get(), Generic(&address), sizeof address) < 0)
    return Failure(Text("connect '", Printable(path), "'"));
  return fd;
}

Result<UniqueFd> Accept(int listener) {
  while (true) {
    int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) return UniqueFd(fd);
    int err = errno;
    if (err != EINTR && err != ECONNABORTED)
      return FailureOf(err, Text("accept (fd ", listener, ")"));
  }
}

Result<struct ucred> PeerCredentials(int fd) {
  struct ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
    return Failure(Text("getsockopt SO_PEERCRED (fd ", fd, ")"));
  return peer;
}

Result<std::string> PeerPath(int fd) {
  struct sockaddr_un address = {};
  socklen_t size = sizeof address;
  void* generic = &address;
  if (::getpeername(fd, static_cast<struct sockaddr*>(generic), &size) < 0)
    return Failure(Text("getpeername (fd ", fd, ")"));
  // A path as long as there is room for has no NUL behind it.
  constexpr std::size_t kMostBytes = sizeof address.sun_path;
  return std::string(address.sun_path, ::strnlen(address.sun_path, kMostBytes));
}

Result<LoopbackListener> ListenLoopback() {
  UniqueFd fd = TRY(MakeSocket(AF_INET, SOCK_STREAM));
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd.get(), Generic(&address), sizeof address) < 0) return Failure("bind 127.0.0.1");
  if (::listen(fd.get(), 128) < 0) return Failure("listen 127.0.0.1");
  socklen_t size = sizeof address;
  void* generic = &address;
  if (::getsockname(fd.get(), static_cast<struct sockaddr*>(generic), &size) < 0)
    return Failure("getsockname 127.0.0.1");
  return LoopbackListener{std::move(fd), ntohs(address.sin_port)};
}

Status SendPacket(int fd, std::string_view packet, int pass_fd) {
  if (pass_fd < 0) return SendDescriptors(fd, packet, {});
  return SendDescriptors(fd, packet, std::span(&pass_fd, 1));
}

Status SendDescriptors(int fd, std::string_view packet, std::span<const int> passed) {
  if (passed.size() > kMostDescriptors) {
    return Error(Kind::kInternal, Text(passed.size(), " descriptors in one packet"), E2BIG);
  }
  struct iovec part = {const_cast<char*>(packet.data()), packet.size()};  // sendmsg only reads
  alignas(struct cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!passed.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(passed.size_bytes());
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(passed.size_bytes());
    std::memcpy(CMSG_DATA(header), passed.data(), passed.size_bytes());
  }
  while (::sendmsg(fd, &message, MSG_NOSIGNAL) < 0) {
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("sendmsg (fd ", fd, ")"));
  }
  return Ok();
}

Result<Packet> ReceivePacket(int fd, std::span<char> buffer, bool want_fd) {
  UniqueFd one;
  Packet packet = TRY(ReceivePacketWith(fd, buffer, std::span(&one, want_fd ? 1U : 0U)));
  packet.passed = std::move(one);
  return packet;
}

Result<Packet> ReceivePacketWith(int fd, std::span<char> buffer, std::span<UniqueFd> passed) {
  if (passed.size() > kMostDescriptors) {
    return Error(Kind::kInternal, Text(passed.size(), " descriptors of one packet"), E2BIG);
  }
  struct iovec part = {buffer.data(), buffer.size()};
  alignas(struct cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!passed.empty()) {
    message.msg_control = control;
    // CRITICAL: not CMSG_SPACE, whose padding has room for one more descriptor that nobody would
    // close.
    message.msg_controllen = CMSG_LEN(passed.size() * sizeof(int));
  }
  ssize_t got = 0;
  while ((got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC)) < 0) {
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("recvmsg (fd ", fd, ")"));
  }
  Packet packet;
  packet.size = static_cast<std::size_t>(got);
  packet.control_discarded = (message.msg_flags & MSG_CTRUNC) != 0;
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    std::array<int, kMostDescriptors> numbers = {};
    std::size_t count = std::min(passed.size(), (header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(numbers.data(), CMSG_DATA(header), count * sizeof(int));
    for (std::size_t index = 0; index < count; ++index) passed[index].Reset(numbers[index]);
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return Error(Kind::kViolation,
                 Text("packet of more than ", buffer.size(), " bytes (fd ", fd, ")"), EMSGSIZE);
  }
  return packet;
}

Result<std::size_t> ReceiveDescriptors(int fd, std::span<char> buffer,
                                       std::vector<UniqueFd>& passed) {
  struct iovec part = {buffer.data(), buffer.size()};
  alignas(struct cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  while ((got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC)) < 0) {
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("recvmsg (fd ", fd, ")"));
  }
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    std::array<int, kMostDescriptors> numbers = {};
    std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(numbers.data(), CMSG_DATA(header), count * sizeof(int));
    for (int number : std::span(numbers).first(count)) passed.emplace_back(number);
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Error(Kind::kViolation,
                 Text("packet of more than ", buffer.size(), " bytes or ", kMostDescriptors,
                      " descriptors (fd ", fd, ")"),
                 EMSGSIZE);
  }
  return static_cast<std::size_t>(got);
}

Result<short> Poll(int fd, short events, int timeout_ms) {
  struct pollfd entry = {fd, events, 0};
  while (::poll(&entry, 1, timeout_ms) < 0) {
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("poll (fd ", fd, ")"));
  }
  return entry.revents;
}

}  // namespace taskcell::sys
