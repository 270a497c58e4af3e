#include "launcher/sys/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

// Reads one integer option; -1 where `fd` is no socket or has no such option.
int SocketOption(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

}  // namespace

Result<uint16_t> LoopbackListenerPort(int fd) {
  bool listens =
      SocketOption(fd, SO_DOMAIN) == AF_INET && SocketOption(fd, SO_TYPE) == SOCK_STREAM &&
      SocketOption(fd, SO_PROTOCOL) == IPPROTO_TCP && SocketOption(fd, SO_ACCEPTCONN) == 1;
  if (!listens)
    return Error(Kind::kViolation, Text("descriptor ", fd, " is no listening TCP socket"));
  struct sockaddr_in address = {};
  socklen_t size = sizeof address;
  void* generic = &address;
  if (::getsockname(fd, static_cast<struct sockaddr*>(generic), &size) < 0)
    return Failure(Text("getsockname (fd ", fd, ")"));
  if (address.sin_family != AF_INET || address.sin_addr.s_addr != htonl(INADDR_LOOPBACK))
    return Error(Kind::kViolation, Text("descriptor ", fd, " does not listen on 127.0.0.1"));
  return ntohs(address.sin_port);
}

}  // namespace taskcell::sys
