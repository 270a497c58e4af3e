#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

struct MHD_Daemon;

namespace taskcell::gateway {

inline constexpr std::size_t kMaxApiBodyBytes = 8U << 20U;
inline constexpr std::size_t kMaxApiHeaderBytes = 16U << 10U;  // request line and headers
inline constexpr unsigned kMaxApiConnections = 128;            // that are served at once
inline constexpr unsigned kSpareApiConnections = 32;  // more are told so; others just closed
inline constexpr unsigned kApiIdleSeconds = 30;  // a connection that says nothing, and is owed none

struct ApiRequest {
  std::string method;
  std::string path;
  std::map<std::string, std::string, std::less<>> query;
  std::string body;
  int client_fd = -1;  // its connection, which is not to be read from; -1: there is none
};

struct ApiAnswer {
  unsigned status = 200;
  std::string body;
  // Where set, the body instead: server-sent events, piece by piece, each never empty; nullopt at
  // the end. May block; called in the connection's thread.
  std::function<std::optional<std::string>()> stream;
  std::string type = "application/json";  // of the body
};

// Answers `{"code": ..., "message": ...}`.
ApiAnswer Refusal(unsigned status, std::string_view code, std::string_view message);

// HTTP/1.1 on a listening unix socket, for processes of this user alone (SO_PEERCRED; others get
// 403). One thread a connection. A body over kMaxApiBodyBytes gets 413, headers over their bound
// 431. While kMaxApiConnections are there, one more gets 503 and the code too_many_clients.
class HttpServer {
 public:
  // `handle` is called in any of those threads.
  using Handler = std::function<ApiAnswer(const ApiRequest&)>;
  static Result<std::unique_ptr<HttpServer>> Start(UniqueFd listener, Handler handle,
                                                   unsigned idle_seconds = kApiIdleSeconds);
  // Waits until every answer is given: streams must end by themselves.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  friend struct HttpCallbacks;
  HttpServer(Handler handle, unsigned idle_seconds)
      : handle_(std::move(handle)), idle_seconds_(idle_seconds) {}

  Handler handle_;
  unsigned idle_seconds_;
  std::atomic<unsigned> connections_ = 0;
  MHD_Daemon* daemon_ = nullptr;  // owns the listener
};

}  // namespace taskcell::gateway
