#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

struct HttpAnswer {
  int status = 0;         // 0: no whole head came
  std::string head;       // as received, lower case
  std::string body;       // without its framing
  bool is_whole = false;  // the framing was ended, not cut
};

// Longer than a busy machine needs for anything that is waited for.
inline constexpr int kPatienceMs = 60'000;

// A client that sends exactly the bytes it is told to: what a hostile program in the cell can do.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port);

  bool IsConnected() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  // False when the peer is gone.
  bool Send(std::string_view bytes);
  // Reads one answer; `timeout_ms` for each wait.
  HttpAnswer Read(int timeout_ms = kPatienceMs);
  // Reads, for Read to find again, until `text` came; false when it does not.
  bool ReadUntil(std::string_view text);
  // True when the peer closes within `timeout_ms`.
  bool IsClosed(int timeout_ms = kPatienceMs);
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
HttpAnswer Exchange(uint16_t port, std::string_view bytes, int timeout_ms = kPatienceMs);

}  // namespace taskcell::gateway
