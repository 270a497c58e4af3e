#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::cell {

// The gate is one SOCK_SEQPACKET connection between taskcell-init and the host side. A frame is one
// packet:
//   type (1 byte), last (1 byte, 1 on the final part of a message), sequence (4 bytes, little
//   endian, from 0, one counter a direction), payload (0 .. kMaxFramePayload bytes).
// A message longer than one payload travels in parts of one type, in order, with nothing between
// them.
//
// init -> host: kListener (payload: EncodePorts; carries one descriptor for each port, in their
// order; provider network only),
// kTerminal (no payload; carries the master side; JobStdio::kTerminal only), kAttestation (parts),
// then after the job came: kStarted, (kStdout | kStderr)*, kExit; or kRefused. Nothing comes after
// kExit or kRefused but what kExport asks for: (kExportFile, kExportBytes*)*, kExportEnd. kRefused
// also comes instead of an attestation that cannot be made. host -> init: kJob (parts: that is
// "go"), kSignal*, kCancel, after kExit kExport (once), kDone (evidence is read: init may exit).
// When the gate closes at any time init kills everything and exits.
enum class FrameType : uint8_t {
  kListener = 1,
  kAttestation = 2,
  kStarted = 3,
  kRefused = 4,  // payload: EncodeRefusal
  kStdout = 5,
  kStderr = 6,
  kExit = 7,  // payload: EncodeExit
  kTerminal = 8,
  kExportFile = 9,    // payload: EncodeExportFile
  kExportBytes = 10,  // payload: the next bytes of that file
  kExportEnd = 11,    // payload: EncodeExportEnd
  kJob = 16,
  kSignal = 17,  // payload: one byte, the signal sent to the job's process group
  kCancel = 18,
  kDone = 19,
  kExport = 20,  // no payload
};

inline constexpr std::size_t kMaxFrameBytes = 64U << 10U;
inline constexpr std::size_t kFrameHeaderBytes = 6;
inline constexpr std::size_t kMaxFramePayload = kMaxFrameBytes - kFrameHeaderBytes;

struct Frame {
  FrameType type = FrameType::kDone;
  bool last = true;
  uint32_t sequence = 0;
  std::string_view payload;  // into the packet's buffer
};

std::string EncodeFrame(const Frame& frame);
// The six bytes before a payload, for a sender that has its payload in a buffer already.
std::array<char, kFrameHeaderBytes> EncodeHeader(FrameType type, bool last, uint32_t sequence);
// Refuses a packet shorter than the header, an unknown type, a `last` other than 0 or 1.
Result<Frame> ParseFrame(std::string_view packet);

// The most bytes a whole message of this type may have: kMaxAttestationBytes, kMaxJobBytes, or one
// frame's payload.
std::size_t MaxMessageBytes(FrameType type);

// Reassembles one direction of the gate: checks that sequence numbers run without gap, that parts
// are not mixed, that only an attestation and a job come in parts, and that a message stays within
// its bound. Any violation is an Error of kind kViolation and ends the gate: a reader that refused
// once refuses everything after.
class FrameReader {
 public:
  struct Message {
    FrameType type;
    std::string payload;  // whole
  };
  // Takes one packet. Returns true when `message` was filled with a whole message, false when parts
  // are missing.
  Result<bool> Take(std::string_view packet, Message& message);

 private:
  uint32_t next_sequence_ = 0;
  bool failed_ = false;
  bool in_parts_ = false;
  FrameType part_type_ = FrameType::kDone;
  std::string parts_;
};

// Cuts messages into frames and numbers them. Next() yields encoded packets until it returns false.
class FrameWriter {
 public:
  // Calls `send(std::string_view packet)` -> Status for each frame of the message.
  template <typename Send>
  Status Write(FrameType type, std::string_view payload, Send send) {
    do {
      std::string_view part = payload.substr(0, kMaxFramePayload);
      payload.remove_prefix(part.size());
      TRY(send(EncodeFrame({type, payload.empty(), next_sequence_++, part})));
    } while (!payload.empty());
    return Ok();
  }

  // The header of a message of one frame whose payload the caller sends itself, right after it.
  std::array<char, kFrameHeaderBytes> Header(FrameType type) {
    return EncodeHeader(type, true, next_sequence_++);
  }

 private:
  uint32_t next_sequence_ = 0;
};

// kListener's payload: where the cell's loopback listeners are bound. They are two different ones;
// 0: the plan asks for no listener for tunnels.
struct ListenerPorts {
  uint16_t broker = 0;
  uint16_t tunnel = 0;
};
std::string EncodePorts(const ListenerPorts& ports);
Result<ListenerPorts> ParsePorts(std::string_view payload);

// Why a job did not start, or why init gave up. `stage` names the step ("landlock", "chdir",
// "exec", ...).
struct Refusal {
  std::string stage;
  int32_t err = 0;
  std::string text;
};
std::string EncodeRefusal(const Refusal& refusal);
Result<Refusal> ParseRefusal(std::string_view payload);

enum class ExitReason : uint8_t { kExited, kDeadline, kCancelled };
struct JobExit {
  ExitReason reason = ExitReason::kExited;
  int32_t code = 0;    // exit status, where signal is 0
  int32_t signal = 0;  // the signal that ended the job's first process
  uint64_t user_us = 0;
  uint64_t system_us = 0;
  uint64_t wall_us = 0;
};
std::string EncodeExit(const JobExit& exit);
Result<JobExit> ParseExit(std::string_view payload);

}  // namespace taskcell::cell
