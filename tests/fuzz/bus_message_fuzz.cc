// A line of the home's bus, which any program of the platform may have written.
#include "gateway/intake/bus_message.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell::gateway;
  using taskcell::fuzz::Require;
  const BusLine line = ParseBusLine(taskcell::fuzz::TextOf(data, size));
  Require((line.kind == BusLineKind::kBroken) == !line.trouble.empty());
  if (line.kind != BusLineKind::kMessage) return 0;
  const BusMessage& message = line.message;
  Require(!message.message_id.empty() && message.message_id.size() <= kMaxMessageIdBytes);
  // Whoever wrote it cannot choose the host.
  Require(CoverageOf(KindOf(message)) == Coverage::kInCell);
  const bool is_task = !ObjectionTo(message).has_value();
  Require(!is_task || message.payload.size() <= kMaxPayloadBytes);
  // Its reply is one line that is read as a reply, and no message of any kind.
  const std::string reply =
      ReplyLine(EnvelopeOf(message), message.message_id, "r", message.payload, {});
  Require(reply.find('\n') == std::string::npos);
  const BusLine read = ParseBusLine(reply);
  Require(read.kind == BusLineKind::kReply && read.message.message_id == "r");
  return 0;
}
