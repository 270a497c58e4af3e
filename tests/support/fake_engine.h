#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launcher/base/unique_fd.h"

namespace taskcell::test {

// A unix stream socket that answers each HTTP request with raw bytes of the test's choice, so that
// answers no real engine would give can be given. One request a connection; each connection has a
// thread of its own, so that one may hang while others are answered.
class FakeEngine {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::string body;
  };
  // Returns the bytes to send; the connection is closed after them.
  using Handler = std::function<std::string(const Request&)>;

  explicit FakeEngine(Handler handler);
  ~FakeEngine();
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  const std::string& socket_path() const { return socket_path_; }
  std::vector<Request> requests();

  // "HTTP/1.1 <status> X" with a Content-Length and Api-Version 1.41.
  static std::string Answer(int status, const std::string& body, const std::string& headers = "");

 private:
  void Serve();
  void ServeOne(const UniqueFd& owner);

  Handler handler_;
  std::string directory_;
  std::string socket_path_;
  UniqueFd listener_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<std::thread> connections_;  // of thread_ alone while that runs
  std::thread thread_;
};

}  // namespace taskcell::test
