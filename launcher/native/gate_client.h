#pragma once

#include <memory>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/cell/job.h"

namespace taskcell::native {

// How long taskcell-init may take from exec to its whole attestation.
inline constexpr int kAttestationTimeoutMs = 10'000;

// The host end of a cell's gate, for taskcell-launch as a command: attestation in, job out, exit
// back. Nothing of the cell is believed beyond its own run.
class GateClient {
 public:
  // Where `stop_fd` is readable, an attestation is no longer waited for (code stopped); -1: never.
  explicit GateClient(UniqueFd gate, int stop_fd = -1)
      : gate_(std::move(gate)), stop_fd_(stop_fd) {}

  int fd() const { return gate_.get(); }

  // Before the attestation of a cell with a terminal of its own: receives the master side.
  Result<UniqueFd> ReceiveTerminal();

  // Receives the attestation; anything else first, or none in time, is an Error.
  Result<cell::InsideAttestation> ReceiveAttestation();

  // Hands the job over: that is "go".
  Status SendJob(const cell::Job& job);
  Status SendSignal(int signal);
  // The evidence is read: init may exit.
  Status SendDone();

  // Takes one packet, and the descriptor it may bring where `passed` is given. True when `message`
  // was filled with a whole message; an Error with err EPIPE when init has closed the gate.
  Result<bool> Receive(cell::FrameReader::Message& message, UniqueFd* passed = nullptr);

 private:
  Result<cell::FrameReader::Message> ReceiveInTime(UniqueFd* passed);
  Status Send(cell::FrameType type, std::string_view payload);

  UniqueFd gate_;
  int stop_fd_;
  cell::FrameReader reader_;
  cell::FrameWriter writer_;
  // As large as a packet may be; only what is received into is ever touched.
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(cell::kMaxFrameBytes);
};

}  // namespace taskcell::native
