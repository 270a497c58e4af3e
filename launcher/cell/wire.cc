#include "launcher/cell/wire.h"

#include "launcher/base/text.h"

namespace taskcell::cell {

void WireReader::Fail(std::string_view reason) {
  if (!failed_) reason_ = reason;
  failed_ = true;
  rest_ = {};
}

uint64_t WireReader::Cut(std::size_t size) {
  if (rest_.size() < size) {
    Fail("truncated");
    return 0;
  }
  uint64_t value = 0;
  for (std::size_t byte = 0; byte < size; ++byte) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[byte])) << (8 * byte);
  }
  rest_.remove_prefix(size);
  return value;
}

std::size_t WireReader::CutCount(std::size_t limit) {
  std::size_t count = Cut(4);
  if (count > limit) {
    Fail("a count above its bound");
    return 0;
  }
  return count;
}

std::string WireReader::CutString(std::size_t limit) {
  std::size_t size = CutCount(limit);
  if (rest_.size() < size) {
    Fail("truncated");
    return {};
  }
  std::string value(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return value;
}

Status WireReader::Finish(std::string_view what) const {
  if (failed_) return Error(Kind::kViolation, Text(what, ": ", reason_));
  if (!rest_.empty()) {
    return Error(Kind::kViolation, Text(what, ": ", rest_.size(), " bytes too many at its end"));
  }
  return Ok();
}

}  // namespace taskcell::cell
