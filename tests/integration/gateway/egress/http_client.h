#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

struct HttpAnswer {
  int status = 0;         // 0: no whole head came
  std::string head;       // as received, lower case
  std::string body;       // without its framing
  bool is_whole = false;  // the framing was ended, not cut
  // When each piece of the body arrived, in milliseconds after the request was read for.
  std::vector<int64_t> arrivals_ms;
};

// A client that sends exactly the bytes it is told to: what a hostile program in the cell can do.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port);

  bool IsConnected() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  // False when the peer is gone.
  bool Send(std::string_view bytes);
  // Reads one answer; `timeout_ms` for each wait.
  HttpAnswer Read(int timeout_ms = 10'000);
  // True when the peer closes within `timeout_ms`.
  bool IsClosed(int timeout_ms = 5'000);
  void Close() { fd_.Reset(); }

 private:
  bool Fill(int timeout_ms);

  UniqueFd fd_;
  std::string in_;
};

// "POST path HTTP/1.1" with Host, Content-Length and `headers` (each with CR LF), and the body.
std::string Post(uint16_t port, std::string_view path, std::string_view body,
                 std::string_view headers = "");

// One request on a connection of its own.
HttpAnswer Exchange(uint16_t port, std::string_view bytes, int timeout_ms = 10'000);

}  // namespace taskcell::gateway
