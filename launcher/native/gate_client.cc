#include "launcher/native/gate_client.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {

Result<bool> GateClient::Receive(cell::FrameReader::Message& message, UniqueFd* passed) {
  std::span<char> buffer(buffer_.get(), cell::kMaxFrameBytes);
  sys::Packet packet = TRY(sys::ReceivePacket(gate_.get(), buffer, passed != nullptr));
  if (passed != nullptr) *passed = std::move(packet.passed);
  if (packet.size == 0) return Error(Kind::kSystem, "taskcell-init has closed the gate", EPIPE);
  return reader_.Take(std::string_view(buffer_.get(), packet.size), message);
}

// Waits for one whole message; only its first packet may bring a descriptor, where one is wanted.
Result<cell::FrameReader::Message> GateClient::ReceiveInTime(UniqueFd* passed) {
  uint64_t deadline = sys::MonotonicUs() + kAttestationTimeoutMs * uint64_t{1000};
  cell::FrameReader::Message message;
  while (true) {
    uint64_t now = sys::MonotonicUs();
    int left_ms = now < deadline ? static_cast<int>((deadline - now) / 1000) + 1 : 0;
    std::array<struct pollfd, 2> wait = {{{gate_.get(), POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    const int ready = TRY(sys::PollAll(wait, left_ms));
    if (wait[1].revents != 0)
      return Error(Kind::kSystem, "the cell was no longer wanted when it was to attest", ECANCELED)
          .Coded("stopped");
    if (ready == 0) {
      return Error(Kind::kViolation,
                   Text("no attestation from the cell within ", kAttestationTimeoutMs, " ms"),
                   ETIMEDOUT);
    }
    if (!TRY(Receive(message, std::exchange(passed, nullptr)))) continue;
    if (message.type != cell::FrameType::kRefused) return message;
    cell::Refusal refusal = TRY(cell::ParseRefusal(message.payload));
    return Error(
        Kind::kSystem,
        Text("taskcell-init, stage '", Printable(refusal.stage), "': ", Printable(refusal.text)),
        refusal.err);
  }
}

Result<UniqueFd> GateClient::ReceiveTerminal() {
  UniqueFd terminal;
  cell::FrameReader::Message message = TRY(ReceiveInTime(&terminal));
  if (message.type == cell::FrameType::kTerminal && terminal.valid()) return terminal;
  return Error(Kind::kViolation, "the cell sent no terminal before its attestation");
}

Result<cell::InsideAttestation> GateClient::ReceiveAttestation() {
  cell::FrameReader::Message message = TRY(ReceiveInTime(nullptr));
  if (message.type == cell::FrameType::kAttestation) return cell::ParseAttestation(message.payload);
  return Error(Kind::kViolation, "the cell spoke before its attestation");
}

Status GateClient::SendJob(const cell::Job& job) {
  return Send(cell::FrameType::kJob, cell::EncodeJob(job));
}

Status GateClient::SendSignal(int signal) {
  char byte = static_cast<char>(signal);
  return Send(cell::FrameType::kSignal, std::string_view(&byte, 1));
}

Status GateClient::SendDone() { return Send(cell::FrameType::kDone, {}); }

Status GateClient::Send(cell::FrameType type, std::string_view payload) {
  return writer_.Write(type, payload, [this](const std::string& packet) {
    return sys::SendPacket(gate_.get(), packet);
  });
}

}  // namespace taskcell::native
