#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "launcher/base/unique_fd.h"

namespace taskcell::bench {

struct SslContextDeleter {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextDeleter>;

// A server's context with the certificate and key of the PEM file `path`; nullptr where that does
// not work.
SslContext ServerContext(const std::string& path);
// A client's, which trusts whoever answers: what is measured is its work.
SslContext ClientContext();

// A blocking TCP connection, with TLS or without. A failure is the end of the connection.
class Channel {
 public:
  // `context` is nullptr without TLS; the handshake is part of it. Not open where that fails.
  static Channel Accept(int listener, SSL_CTX* context);
  static Channel Connect(uint16_t port, SSL_CTX* context);

  bool is_open() const { return fd_.valid(); }
  bool Send(std::string_view bytes);
  // What came, at most as much as fits; nothing at the end.
  std::string_view Receive(std::span<char> buffer);

 private:
  struct SslDeleter {
    void operator()(SSL* ssl) const { ::SSL_free(ssl); }
  };
  Channel(UniqueFd fd, SSL_CTX* context, bool is_server);

  UniqueFd fd_;
  std::unique_ptr<SSL, SslDeleter> ssl_;
};

}  // namespace taskcell::bench
