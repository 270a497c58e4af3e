#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

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
  // Gets the body of an answer of status 200 as it comes, whatever its length, and nothing of it is
  // kept; false ends the call with an Error. Empty: the body is kept, within its bound.
  std::function<bool(std::string_view)> take = {};
  std::chrono::seconds quiet{0};  // how long nothing may come; 0: as long as `timeout` lasts
};

struct HttpAnswer {
  long status = 0;
  bool new_connection = false;  // it came by another connection than the answer before
  std::string api_version;      // the Api-Version header
  std::string body;
};

// Percent-encodes what may not stand in a path or a query; '/' stays, image names have it.
std::string EscapeUrl(std::string_view text);

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

  // Lets the connection go: the next call makes another.
  void Disconnect();

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
