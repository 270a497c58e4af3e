#include "launcher/sys/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/socket.h"

namespace taskcell::sys {
namespace {

constexpr int kBacklog = 128;
constexpr mode_t kAllButOwner = 0177;

struct Address {
  struct sockaddr_un name = {};
  socklen_t length = 0;
  const struct sockaddr* generic() const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how sockets take addresses
    return reinterpret_cast<const struct sockaddr*>(&name);
  }
};

// A path gets its final NUL, an abstract name none.
Result<Address> AddressOf(std::string path) {
  const bool is_abstract = path.starts_with('@');
  Address address;
  address.name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.name.sun_path)
    return Error(Kind::kUsage,
                 Text("'", Printable(path), "' is not the path of a socket: 1 to 107 bytes"));
  if (is_abstract) path[0] = '\0';
  std::memcpy(address.name.sun_path, path.data(), path.size());
  address.length = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + path.size() +
                                          (is_abstract ? 0 : 1));
  return address;
}

}  // namespace

Result<UniqueFd> ListenStream(const std::string& path) {
  const Address address = TRY(AddressOf(path));
  UniqueFd fd = TRY(MakeSocket(AF_UNIX, SOCK_STREAM));
  const mode_t before = ::umask(kAllButOwner);
  Status bound = ::bind(fd.get(), address.generic(), address.length) < 0
                     ? Status(Failure(Text("bind '", Printable(path), "'")))
                     : Ok();
  ::umask(before);
  TRY(std::move(bound));
  if (::listen(fd.get(), kBacklog) < 0) return Failure(Text("listen '", Printable(path), "'"));
  return fd;
}

Status SendDatagram(const std::string& path, std::string_view text) {
  const Address address = TRY(AddressOf(path));
  UniqueFd fd = TRY(MakeSocket(AF_UNIX, SOCK_DGRAM));
  if (::sendto(fd.get(), text.data(), text.size(), MSG_NOSIGNAL, address.generic(),
               address.length) < 0)
    return Failure(Text("sendto '", Printable(path), "'"));
  return Ok();
}

}  // namespace taskcell::sys
