#include "gateway/egress/http_body.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kChunkLineBytes = 8;  // hexadecimal digits of a chunk's size

Refusal TooLarge(std::size_t limit) {
  return Refusal{413, "egress_body_size",
                 Text("the request body is larger than ", limit, " bytes")};
}

Refusal BadChunk() {
  return Refusal{400, "egress_http", "the request was refused: its chunks are malformed"};
}

}  // namespace

BodyReader::BodyReader(const RequestHead& head, std::size_t limit)
    : state_(head.is_chunked ? State::kChunkSize : State::kData),
      left_(head.content_length),
      limit_(limit) {
  if (state_ == State::kData && left_ == 0) state_ = State::kDone;
  // As large as it will be: memory is given by the kernel when it is first written.
  if (left_ <= limit) body_.reserve(left_);
}

std::optional<Refusal> BodyReader::Take(std::string_view* bytes) {
  if (state_ == State::kData) {
    if (body_.size() + left_ > limit_) return TooLarge(limit_);
    TakeData(bytes);
    if (left_ == 0) state_ = State::kDone;
    return std::nullopt;
  }
  while (state_ != State::kDone && !bytes->empty()) {
    if (std::optional<Refusal> refusal = TakeChunkPart(bytes)) return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> BodyReader::TakeChunkPart(std::string_view* bytes) {
  if (state_ == State::kChunkData) {
    TakeData(bytes);
    if (left_ == 0) state_ = State::kChunkEnd;
    return std::nullopt;
  }
  std::optional<Refusal> refusal;
  if (!TakeLine(bytes, &refusal)) return refusal;
  std::string line = std::exchange(line_, {});
  if (state_ == State::kChunkSize) return StartChunk(line);
  if (!line.empty()) return BadChunk();
  state_ = state_ == State::kTrailer ? State::kDone : State::kChunkSize;
  return std::nullopt;
}

std::optional<Refusal> BodyReader::StartChunk(std::string_view size_line) {
  std::optional<uint64_t> size = ParseHex(size_line);
  if (!size) return BadChunk();
  if (*size > limit_ - body_.size()) return TooLarge(limit_);
  left_ = *size;
  state_ = left_ == 0 ? State::kTrailer : State::kChunkData;
  return std::nullopt;
}

bool BodyReader::TakeLine(std::string_view* bytes, std::optional<Refusal>* refusal) {
  while (!bytes->empty()) {
    char c = bytes->front();
    bytes->remove_prefix(1);
    bool follows_cr = !line_.empty() && line_.back() == '\r';
    if (c == '\n' && follows_cr) {
      line_.pop_back();
      return true;
    }
    if (c == '\n' || follows_cr || line_.size() > kChunkLineBytes ||
        (line_.size() == kChunkLineBytes && c != '\r')) {
      *refusal = BadChunk();
      return false;
    }
    line_ += c;
  }
  return false;
}

void BodyReader::TakeData(std::string_view* bytes) {
  std::size_t count = static_cast<std::size_t>(std::min<uint64_t>(left_, bytes->size()));
  body_ += bytes->substr(0, count);
  bytes->remove_prefix(count);
  left_ -= count;
}

}  // namespace taskcell::gateway
