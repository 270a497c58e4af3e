#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "launcher/base/result.h"
#include "probe/engine/endpoint.h"

namespace taskcell::probe {

// Bounds of one answer of an engine: bodies, header lines altogether, and how long a request may
// take. Everything past them is an Error.
inline constexpr std::size_t kMaxEngineAnswerBytes = 4U << 20U;
inline constexpr std::size_t kMaxEngineHeaderBytes = 64U << 10U;
inline constexpr std::chrono::milliseconds kEngineConnectTimeout{2000};
inline constexpr std::chrono::milliseconds kEngineCallTimeout{10000};

struct HttpRequest {
  const char* method = "GET";
  std::string target;  // absolute path with its query
  std::string body;    // of the type below, or empty
  std::chrono::milliseconds timeout = kEngineCallTimeout;
  const char* content_type = "application/json";
};

struct HttpAnswer {
  long status = 0;
  std::string api_version;  // the Api-Version header
  std::string body;
};

// HTTP/1.1 to one unix socket. No redirect is followed, no proxy and no netrc is used, HTTP/0.9 is
// refused. Serves one thread.
class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  const Endpoint& endpoint() const { return endpoint_; }

  // From now on a call is given up, with code stopped, as soon as `fd` is readable or its other end
  // is gone; -1: never.
  void CancelOn(int fd) { cancel_fd_ = fd; }

  // Any status is an answer. An Error (code docker_unreachable, naming the endpoint, its source and
  // the remedy) means that no whole answer came: no socket, refused, not allowed, not HTTP, cut
  // off, too long, too late.
  Result<HttpAnswer> Call(const HttpRequest& request);

 private:
  struct Handle;

  Error Unreachable(int curl_code, int os_error, const HttpRequest& request) const;

  Endpoint endpoint_;
  int cancel_fd_ = -1;
  std::unique_ptr<Handle> handle_;
};

}  // namespace taskcell::probe
