#include "launcher/native/gate_client.h"

#include <poll.h>

#include <cerrno>
#include <span>

#include "launcher/base/text.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {

Result<bool> GateClient::Receive(cell::FrameReader::Message& message) {
  std::span<char> buffer(buffer_.get(), cell::kMaxFrameBytes);
  sys::Packet packet = TRY(sys::ReceivePacket(gate_.get(), buffer, false));
  if (packet.size == 0) return Error(Kind::kSystem, "taskcell-init has closed the gate", EPIPE);
  return reader_.Take(std::string_view(buffer_.get(), packet.size), message);
}

Result<cell::InsideAttestation> GateClient::ReceiveAttestation() {
  uint64_t deadline = sys::MonotonicUs() + kAttestationTimeoutMs * uint64_t{1000};
  cell::FrameReader::Message message;
  while (true) {
    uint64_t now = sys::MonotonicUs();
    int left_ms = now < deadline ? static_cast<int>((deadline - now) / 1000) + 1 : 0;
    if (TRY(sys::Poll(gate_.get(), POLLIN, left_ms)) == 0) {
      return Error(Kind::kViolation,
                   Text("no attestation from the cell within ", kAttestationTimeoutMs, " ms"),
                   ETIMEDOUT);
    }
    if (!TRY(Receive(message))) continue;
    if (message.type == cell::FrameType::kAttestation) break;
    if (message.type == cell::FrameType::kRefused) {
      cell::Refusal refusal = TRY(cell::ParseRefusal(message.payload));
      return Error(
          Kind::kSystem,
          Text("taskcell-init, stage '", Printable(refusal.stage), "': ", Printable(refusal.text)),
          refusal.err);
    }
    return Error(Kind::kViolation, "the cell spoke before its attestation");
  }
  return cell::ParseAttestation(message.payload);
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
