#include "launcher/sys/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

constexpr bool WouldBlock(int err) { return err == EAGAIN; }
static_assert(EAGAIN == EWOULDBLOCK);

}  // namespace

Result<std::optional<UniqueFd>> AcceptNow(int listener) {
  while (true) {
    int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return std::optional<UniqueFd>(UniqueFd(fd));
    int err = errno;
    if (WouldBlock(err)) return std::optional<UniqueFd>();
    if (err != EINTR && err != ECONNABORTED)
      return FailureOf(err, Text("accept (fd ", listener, ")"));
  }
}

Result<std::optional<std::size_t>> ReceiveNow(int fd, std::span<char> buffer) {
  while (true) {
    ssize_t got = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got >= 0) return std::optional<std::size_t>(static_cast<std::size_t>(got));
    int err = errno;
    if (WouldBlock(err)) return std::optional<std::size_t>();
    if (err != EINTR) return FailureOf(err, Text("recv (fd ", fd, ")"));
  }
}

bool MayReceive(int fd) {
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

Result<std::optional<std::size_t>> SendNow(int fd, std::string_view data) {
  while (true) {
    ssize_t sent = ::send(fd, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return std::optional<std::size_t>(static_cast<std::size_t>(sent));
    int err = errno;
    if (WouldBlock(err)) return std::optional<std::size_t>();
    if (err != EINTR) return FailureOf(err, Text("send (fd ", fd, ")"));
  }
}

Status EndSending(int fd) {
  if (::shutdown(fd, SHUT_WR) < 0) return Failure(Text("shutdown (fd ", fd, ")"));
  return Ok();
}

Status SendAtOnce(int fd) {
  int on = 1;
  if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
    return Failure(Text("setsockopt TCP_NODELAY (fd ", fd, ")"));
  return Ok();
}

}  // namespace taskcell::sys
