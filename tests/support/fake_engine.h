#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launcher/base/unique_fd.h"

namespace taskcell::test {

// A unix stream socket that answers each HTTP request with raw bytes of the test's choice, so that
// answers no real engine would give can be given. Each connection has a thread of its own, so that
// one may hang while others are answered.
class FakeEngine {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::string body;
  };
  // Returns the bytes to send.
  using Handler = std::function<std::string(const Request&)>;
  // When a connection is closed.
  enum class Close : uint8_t {
    kAfterEach,     // answer
    kWhenItSaysSo,  // an answer, by "Connection: close", or when there is none at all
  };

  explicit FakeEngine(Handler handler, Close close = Close::kAfterEach);
  ~FakeEngine();
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  const std::string& socket_path() const { return socket_path_; }
  std::vector<Request> requests();

  // "HTTP/1.1 <status> X" with a Content-Length and Api-Version 1.41.
  static std::string Answer(int status, const std::string& body, const std::string& headers = "");
  // The same without a word of closing.
  static std::string LastingAnswer(int status, const std::string& body);

 private:
  void Serve();
  void ServeConnection(const UniqueFd& owner);
  bool ServeOne(int connection);

  Handler handler_;
  Close close_;
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
