#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/egress/http_request.h"

namespace taskcell::gateway {

// Takes one request body off a byte stream, by length or in chunks, up to a limit. Chunk extensions
// and trailers are refused: no program here sends them and parsers disagree on them.
class BodyReader {
 public:
  // A body longer than `limit` is refused at once where its length is announced.
  BodyReader(const RequestHead& head, std::size_t limit);

  // Takes what belongs to the body from the front of `bytes` and removes it there. Once done()
  // nothing more is taken. After a refusal the stream can't be read on.
  std::optional<Refusal> Take(std::string_view* bytes);

  bool done() const { return state_ == State::kDone; }
  const std::string& body() const { return body_; }
  std::string TakeBody() { return std::move(body_); }

 private:
  enum class State { kData, kChunkSize, kChunkData, kChunkEnd, kTrailer, kDone };

  std::optional<Refusal> TakeChunkPart(std::string_view* bytes);
  std::optional<Refusal> StartChunk(std::string_view size_line);
  // Moves the next line without CR LF into `line_`; true once it is whole.
  bool TakeLine(std::string_view* bytes, std::optional<Refusal>* refusal);
  void TakeData(std::string_view* bytes);

  State state_;
  uint64_t left_ = 0;  // bytes missing of the body, or of the chunk
  std::size_t limit_;
  std::string line_;
  std::string body_;
};

}  // namespace taskcell::gateway
