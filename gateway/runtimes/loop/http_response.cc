#include "gateway/runtimes/loop/http_response.h"

#include <algorithm>
#include <optional>

#include "launcher/base/text.h"

namespace taskcell::gateway::loop {
namespace {

Error Bad(std::string_view what) {
  return Error(Kind::kViolation, Text("the answer is not proper HTTP: ", what));
}

bool IsTokenByte(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kOthers.find(c) != std::string_view::npos;
}

}  // namespace

Result<bool> HttpResponseReader::Take(std::string_view bytes) {
  input_ += bytes;
  while (stage_ != Stage::kDone) {
    if (stage_ == Stage::kLength || stage_ == Stage::kChunk || stage_ == Stage::kToClose) {
      TRY(TakeBody());
      if (input_.empty()) break;
      continue;
    }
    std::string_view line;
    if (!TRY(NextLine(line))) break;
    std::string copy(line);
    input_.erase(0, copy.size() + 2);
    TRY(TakeLine(copy));
  }
  return stage_ == Stage::kDone;
}

Status HttpResponseReader::End() {
  if (stage_ == Stage::kToClose) stage_ = Stage::kDone;
  if (stage_ != Stage::kDone) return Bad("the connection ended early");
  return Ok();
}

// Finds the next CRLF line. The lines of a whole response are bounded together.
Result<bool> HttpResponseReader::NextLine(std::string_view& line) {
  std::size_t end = input_.find('\n');
  std::size_t size = end == std::string::npos ? input_.size() : end + 1;
  if (line_bytes_ + size > kMaxHeaderBytes) return Bad("its header is over 32 KiB");
  if (end == std::string::npos) return false;
  line_bytes_ += size;
  if (end == 0 || input_[end - 1] != '\r') return Bad("a line without carriage return");
  line = std::string_view(input_).substr(0, end - 1);
  if (line.find_first_of(std::string_view("\r\0", 2)) != std::string_view::npos) {
    return Bad("a stray byte in a line");
  }
  return true;
}

Status HttpResponseReader::TakeLine(std::string_view line) {
  switch (stage_) {
    case Stage::kHead:
      if (status_ == 0) return StatusLine(line);
      return line.empty() ? EndOfHead() : Field(line);
    case Stage::kChunkLine:
      return ChunkLine(line);
    case Stage::kChunkEnd:
      if (!line.empty()) return Bad("a chunk longer than it said");
      stage_ = Stage::kChunkLine;
      return Ok();
    default:  // kTrailer: fields of no interest, up to the empty line
      if (line.empty()) stage_ = Stage::kDone;
      return Ok();
  }
}

Status HttpResponseReader::StatusLine(std::string_view line) {
  bool version = line.substr(0, 9) == "HTTP/1.1 " || line.substr(0, 9) == "HTTP/1.0 ";
  uint64_t code = version ? ParseUnsigned(line.substr(9, 3)).value_or(0) : 0;
  bool ends = line.size() == 12 || (line.size() > 12 && line[12] == ' ');
  if (code < 100 || code > 599 || !ends) return Bad("its status line");
  status_ = static_cast<int>(code);
  return Ok();
}

Status HttpResponseReader::Field(std::string_view line) {
  std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return Bad("a header field without a name");
  std::string name = Lower(line.substr(0, colon));
  if (!std::all_of(name.begin(), name.end(), IsTokenByte)) return Bad("a header field's name");
  std::string value = Lower(Trim(line.substr(colon + 1)));
  if (name == "content-length") {
    std::optional<uint64_t> length = ParseUnsigned(value);
    if (!length || has_length_) return Bad("its content-length");
    has_length_ = true;
    left_ = *length;
  } else if (name == "transfer-encoding") {
    if (value != "chunked" || chunked_) return Bad("its transfer-encoding");
    chunked_ = true;
  } else if (name == "content-encoding" && value != "identity") {
    return Bad("a content-encoding nobody asked for");
  }
  return Ok();
}

Status HttpResponseReader::EndOfHead() {
  if (chunked_ && has_length_) return Bad("content-length and chunks at once");
  if (status_ < 200) {  // an interim response: the real one follows
    if (chunked_ || has_length_ || status_ == 101) return Bad("an interim response with a body");
    status_ = 0;
    return Ok();
  }
  if (has_length_ && left_ > kMaxBodyBytes) return Bad("its body is over 4 MiB");
  if (status_ == 204 || status_ == 304 || (has_length_ && left_ == 0)) {
    stage_ = Stage::kDone;
  } else if (chunked_) {
    stage_ = Stage::kChunkLine;
  } else {
    stage_ = has_length_ ? Stage::kLength : Stage::kToClose;
  }
  return Ok();
}

Status HttpResponseReader::ChunkLine(std::string_view line) {
  std::optional<uint64_t> size = ParseHex(Trim(line.substr(0, line.find(';'))));
  if (!size) return Bad("a chunk's size");
  if (*size > kMaxBodyBytes - body_.size()) return Bad("its body is over 4 MiB");
  left_ = *size;
  stage_ = left_ == 0 ? Stage::kTrailer : Stage::kChunk;
  return Ok();
}

Status HttpResponseReader::TakeBody() {
  std::size_t size = input_.size();
  if (stage_ != Stage::kToClose) size = std::min<std::size_t>(size, left_);
  if (size > kMaxBodyBytes - body_.size()) return Bad("its body is over 4 MiB");
  body_.append(input_, 0, size);
  input_.erase(0, size);
  if (stage_ == Stage::kToClose) return Ok();
  left_ -= size;
  if (left_ == 0) stage_ = stage_ == Stage::kChunk ? Stage::kChunkEnd : Stage::kDone;
  return Ok();
}

}  // namespace taskcell::gateway::loop
