#include "launcher/cell/gate_protocol.h"

#include "launcher/base/text.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/job.h"
#include "launcher/cell/wire.h"

namespace taskcell::cell {
namespace {

constexpr std::size_t kMaxStageBytes = 64;
constexpr std::size_t kMaxRefusalBytes = 8192;
constexpr int32_t kMaxExitCode = 255;
constexpr int32_t kMaxSignal = 64;

Error Violation(std::string_view text) { return Error(Kind::kViolation, Text("gate: ", text)); }

bool IsKnown(FrameType type) {
  switch (type) {
    case FrameType::kListener:
    case FrameType::kAttestation:
    case FrameType::kStarted:
    case FrameType::kRefused:
    case FrameType::kStdout:
    case FrameType::kStderr:
    case FrameType::kExit:
    case FrameType::kTerminal:
    case FrameType::kJob:
    case FrameType::kSignal:
    case FrameType::kCancel:
    case FrameType::kDone:
    case FrameType::kExportFile:
    case FrameType::kExportBytes:
    case FrameType::kExportEnd:
    case FrameType::kExport:
      return true;
  }
  return false;
}

uint32_t ReadNumber(std::string_view bytes) {
  uint32_t number = 0;
  for (std::size_t byte = bytes.size(); byte > 0; --byte) {
    number = (number << 8U) | static_cast<unsigned char>(bytes[byte - 1]);
  }
  return number;
}

template <typename Io, typename Value>
void RefusalFields(Io& io, Value& refusal) {
  io.String(refusal.stage, kMaxStageBytes);
  io.Number(refusal.err);
  io.String(refusal.text, kMaxRefusalBytes);
}

template <typename Io, typename Value>
void ExitFields(Io& io, Value& exit) {
  io.Choice(exit.reason, ExitReason::kCancelled);
  io.Number(exit.code);
  io.Number(exit.signal);
  io.Number(exit.user_us);
  io.Number(exit.system_us);
  io.Number(exit.wall_us);
}

}  // namespace

std::array<char, kFrameHeaderBytes> EncodeHeader(FrameType type, bool last, uint32_t sequence) {
  return {static_cast<char>(type),
          static_cast<char>(last ? 1 : 0),
          static_cast<char>(sequence & 0xffU),
          static_cast<char>((sequence >> 8U) & 0xffU),
          static_cast<char>((sequence >> 16U) & 0xffU),
          static_cast<char>(sequence >> 24U)};
}

std::string EncodeFrame(const Frame& frame) {
  std::array<char, kFrameHeaderBytes> header = EncodeHeader(frame.type, frame.last, frame.sequence);
  std::string packet;
  packet.reserve(header.size() + frame.payload.size());
  packet.append(header.data(), header.size());
  packet.append(frame.payload);
  return packet;
}

Result<Frame> ParseFrame(std::string_view packet) {
  if (packet.size() < kFrameHeaderBytes) return Violation("a packet shorter than a frame's header");
  if (packet.size() > kMaxFrameBytes) return Violation("a packet longer than a frame may be");
  Frame frame;
  frame.type = static_cast<FrameType>(packet[0]);
  if (!IsKnown(frame.type)) return Violation("a frame of an unknown type");
  if (packet[1] != 0 && packet[1] != 1) return Violation("a frame that is half last");
  frame.last = packet[1] == 1;
  frame.sequence = ReadNumber(packet.substr(2, 4));
  frame.payload = packet.substr(kFrameHeaderBytes);
  return frame;
}

std::size_t MaxMessageBytes(FrameType type) {
  if (type == FrameType::kAttestation) return kMaxAttestationBytes;
  if (type == FrameType::kJob) return kMaxJobBytes;
  return kMaxFramePayload;
}

Result<bool> FrameReader::Take(std::string_view packet, Message& message) {
  if (failed_) return Violation("a frame after a violation");
  failed_ = true;  // until this packet proved to be in order
  Frame frame = TRY(ParseFrame(packet));
  if (frame.sequence != next_sequence_) {
    return Violation(Text("frame ", frame.sequence, " where ", next_sequence_, " was due"));
  }
  if (in_parts_ && frame.type != part_type_) return Violation("parts of two messages are mixed");
  std::size_t limit = MaxMessageBytes(frame.type);
  if (!frame.last && limit == kMaxFramePayload) {
    return Violation("a message in parts that has to fit into one frame");
  }
  // Each part but the last is full: a message has a bounded number of frames, too.
  if (!frame.last && frame.payload.size() != kMaxFramePayload) {
    return Violation("a part that is not full before the last one");
  }
  if (parts_.size() + frame.payload.size() > limit) {
    return Violation(Text("a message of more than ", limit, " bytes"));
  }
  ++next_sequence_;
  failed_ = false;
  parts_ += frame.payload;
  part_type_ = frame.type;
  in_parts_ = !frame.last;
  if (in_parts_) return false;
  message.type = frame.type;
  message.payload = std::move(parts_);
  parts_ = std::string();
  return true;
}

std::string EncodePorts(const ListenerPorts& ports) {
  WireWriter writer;
  writer.Number(ports.broker);
  writer.Number(ports.tunnel);
  return writer.Take();
}

Result<ListenerPorts> ParsePorts(std::string_view payload) {
  WireReader reader(payload);
  ListenerPorts ports;
  reader.Number(ports.broker);
  reader.Number(ports.tunnel);
  TRY(reader.Finish("listener frame"));
  if (ports.broker == 0) return Violation("a listener on port 0");
  if (ports.broker == ports.tunnel) return Violation("two listeners on one port");
  return ports;
}

std::string EncodeRefusal(const Refusal& refusal) {
  Refusal cut = refusal;
  if (cut.stage.size() > kMaxStageBytes) cut.stage.resize(kMaxStageBytes);
  if (cut.text.size() > kMaxRefusalBytes) cut.text.resize(kMaxRefusalBytes);
  WireWriter writer;
  RefusalFields(writer, cut);
  return writer.Take();
}

Result<Refusal> ParseRefusal(std::string_view payload) {
  WireReader reader(payload);
  Refusal refusal;
  RefusalFields(reader, refusal);
  TRY(reader.Finish("refusal frame"));
  return refusal;
}

std::string EncodeExit(const JobExit& exit) {
  WireWriter writer;
  ExitFields(writer, exit);
  return writer.Take();
}

Result<JobExit> ParseExit(std::string_view payload) {
  WireReader reader(payload);
  JobExit exit;
  ExitFields(reader, exit);
  TRY(reader.Finish("exit frame"));
  bool sound = exit.code >= 0 && exit.code <= kMaxExitCode && exit.signal >= 0 &&
               exit.signal <= kMaxSignal && (exit.code == 0 || exit.signal == 0);
  if (!sound) return Violation(Text("an exit with code ", exit.code, ", signal ", exit.signal));
  return exit;
}

}  // namespace taskcell::cell
