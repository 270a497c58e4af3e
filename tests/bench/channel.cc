#include "tests/bench/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "launcher/sys/socket.h"
#include "launcher/sys/stream.h"

namespace taskcell::bench {
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

}  // namespace

SslContext ServerContext(const std::string& path) {
  SslContext context(::SSL_CTX_new(::TLS_server_method()));
  bool done = context != nullptr &&
              ::SSL_CTX_use_certificate_file(context.get(), path.c_str(), SSL_FILETYPE_PEM) == 1 &&
              ::SSL_CTX_use_PrivateKey_file(context.get(), path.c_str(), SSL_FILETYPE_PEM) == 1;
  if (!done) context.reset();
  return context;
}

SslContext ClientContext() { return SslContext(::SSL_CTX_new(::TLS_client_method())); }

Channel::Channel(UniqueFd fd, SSL_CTX* context, bool is_server) : fd_(std::move(fd)) {
  if (!fd_.valid()) return;
  (void)sys::SendAtOnce(fd_.get());  // ignoring: it would be slower, alike for all
  if (context == nullptr) return;
  ssl_.reset(::SSL_new(context));
  bool done = ssl_ != nullptr && ::SSL_set_fd(ssl_.get(), fd_.get()) == 1 &&
              (is_server ? ::SSL_accept(ssl_.get()) : ::SSL_connect(ssl_.get())) == 1;
  if (!done) fd_.Reset();
}

Channel Channel::Accept(int listener, SSL_CTX* context) {
  Result<UniqueFd> fd = sys::Accept(listener);
  return {fd.ok() ? std::move(fd).value() : UniqueFd(), context, true};
}

Channel Channel::Connect(uint16_t port, SSL_CTX* context) {
  Result<UniqueFd> fd = sys::MakeSocket(AF_INET, SOCK_STREAM);
  if (!fd.ok()) return {UniqueFd(), nullptr, false};
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const struct sockaddr*>(&address);  // as connect(2) wants
  if (::connect(fd->get(), generic, sizeof address) != 0) fd->Reset();
  return {std::move(fd).value(), context, false};
}

bool Channel::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kMostAtOnce);
    const ssize_t sent = ssl_ != nullptr
                             ? ::SSL_write(ssl_.get(), bytes.data(), static_cast<int>(part))
                             : ::send(fd_.get(), bytes.data(), part, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string_view Channel::Receive(std::span<char> buffer) {
  const ssize_t got = ssl_ != nullptr
                          ? ::SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()))
                          : ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace taskcell::bench
