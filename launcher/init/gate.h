#pragma once

#include <array>
#include <span>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/init/options.h"

namespace taskcell::init {

// init's end of the gate. The socket does not block; what must wait polls.
class Gate {
 public:
  // Takes over --gate-fd or connects to --gate-path.
  static Result<Gate> Open(const Options& options);

  explicit Gate(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  // Sends a whole message, waiting as long as the other side lives. `passed` travel with the first
  // frame.
  Status Send(cell::FrameType type, std::string_view payload, std::span<const int> passed = {});

  // For a sender that must not wait: writes the header of a one-frame message to the start of
  // `packet` (a sequence number is used up, so the packet has to be sent), then sends it. Returns
  // false when the socket is full: the same packet has to be sent again later, before anything
  // else.
  void Address(cell::FrameType type, std::span<char> packet);
  Result<bool> TrySend(std::string_view packet);

  // Receives one packet; true when `message` was filled. The other side's end of the gate is an
  // Error of kind kSystem with err 0 (IsClosed), anything against the protocol is kViolation.
  Result<bool> Receive(cell::FrameReader::Message& message);

  // The same, waiting for a whole message.
  Result<cell::FrameReader::Message> Wait();

  static bool IsClosed(const Error& error) { return error.kind == Kind::kSystem && error.err == 0; }

 private:
  Status SendPacket(std::string_view packet, std::span<const int> passed);

  UniqueFd socket_;
  cell::FrameReader reader_;
  cell::FrameWriter writer_;
};

}  // namespace taskcell::init
