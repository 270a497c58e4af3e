// A hostile cell's packets. Each packet of the input: its length (2 bytes, little endian), then its
// bytes. A reader that has refused one packet is not used again.
#include <algorithm>

#include "launcher/cell/gate_protocol.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  cell::FrameReader reader;
  uint32_t frames = 0;
  while (input.size() >= 2) {
    std::size_t low = fuzz::TakeByte(input);
    std::size_t high = fuzz::TakeByte(input);
    std::size_t length = std::min(low | (high << 8U), input.size());
    std::string_view packet = input.substr(0, length);
    input.remove_prefix(length);
    cell::FrameReader::Message message = {};
    Result<bool> taken = reader.Take(packet, message);
    if (!taken.ok()) {
      fuzz::Require(taken.error().kind == Kind::kViolation);
      break;
    }
    Result<cell::Frame> frame = cell::ParseFrame(packet);
    fuzz::Require(frame.ok() && frame->sequence == frames++);
    fuzz::Require(cell::EncodeFrame(frame.value()) == packet);
    fuzz::Require(frame->last == taken.value());
  }
  return 0;
}
