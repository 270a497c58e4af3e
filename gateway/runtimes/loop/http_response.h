#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::gateway::loop {

inline constexpr std::size_t kMaxHeaderBytes = 32U << 10U;  // status line, fields, chunk lines
inline constexpr std::size_t kMaxBodyBytes = 4U << 20U;

// Reads one HTTP/1.1 response, strictly: framing by one Content-Length, by chunks, or by the end of
// the connection; anything ambiguous (both, two lengths, a folded or bare-LF line, another transfer
// or content coding) is an Error of kind kViolation, as is anything over a bound.
class HttpResponseReader {
 public:
  // Takes bytes as they came. True once the response is whole; what follows it is ignored.
  Result<bool> Take(std::string_view bytes);
  // The peer closed the connection: an Error unless that ends the response.
  Status End();

  int status() const { return status_; }
  const std::string& body() const { return body_; }

 private:
  enum class Stage : uint8_t {
    kHead,
    kLength,
    kChunkLine,
    kChunk,
    kChunkEnd,
    kTrailer,
    kToClose,
    kDone
  };

  Result<bool> NextLine(std::string_view& line);
  Status TakeLine(std::string_view line);
  Status StatusLine(std::string_view line);
  Status Field(std::string_view line);
  Status EndOfHead();
  Status ChunkLine(std::string_view line);
  Status TakeBody();

  Stage stage_ = Stage::kHead;
  std::string input_;  // not taken yet
  std::string body_;
  std::size_t line_bytes_ = 0;
  int status_ = 0;  // 0: the status line has not come
  bool has_length_ = false;
  bool chunked_ = false;
  uint64_t left_ = 0;  // of the body or the chunk
};

}  // namespace taskcell::gateway::loop
