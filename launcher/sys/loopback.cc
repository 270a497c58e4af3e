#include "launcher/sys/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"

namespace taskcell::sys {

Result<UniqueFd> ConnectLoopback(uint16_t port) {
  UniqueFd fd = TRY(MakeSocket(AF_INET, SOCK_STREAM));
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const void* pointer = &address;
  if (::connect(fd.get(), static_cast<const struct sockaddr*>(pointer), sizeof(address)) != 0) {
    return Failure(Text("connect 127.0.0.1:", port));
  }
  TRY(SetNonBlocking(fd.get()));
  return fd;
}

Result<std::size_t> SendSome(int fd, std::string_view data) {
  for (;;) {
    ssize_t sent = ::send(fd, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return Failure(Text("send (fd ", fd, ")"));
  }
}

}  // namespace taskcell::sys
