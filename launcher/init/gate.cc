#include "launcher/init/gate.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"

namespace taskcell::init {
namespace {

// What a packet is received into. Static: init has one thread and one gate.
std::array<char, cell::kMaxFrameBytes>& Buffer() {
  static std::array<char, cell::kMaxFrameBytes> buffer;
  return buffer;
}

}  // namespace

Result<Gate> Gate::Open(const Options& options) {
  UniqueFd socket(options.gate_fd);
  if (!options.gate_path.empty()) {
    socket = TRY(sys::ConnectUnix(options.gate_path, SOCK_SEQPACKET).With("gate"));
  }
  TRY(sys::CloseOnExec(socket.get()).With("gate"));
  TRY(sys::SetNonBlocking(socket.get()).With("gate"));
  return Gate(std::move(socket));
}

Status Gate::SendPacket(std::string_view packet, std::span<const int> passed) {
  while (true) {
    Status sent = sys::SendDescriptors(fd(), packet, passed);
    if (sent.ok() || sent.error().err != EAGAIN) return sent;
    TRY(sys::Poll(fd(), POLLOUT, -1));
  }
}

Status Gate::Send(cell::FrameType type, std::string_view payload, std::span<const int> passed) {
  return writer_.Write(type, payload, [&](std::string_view packet) {
    return SendPacket(packet, std::exchange(passed, {}));
  });
}

void Gate::Address(cell::FrameType type, std::span<char> packet) {
  std::array<char, cell::kFrameHeaderBytes> header = writer_.Header(type);
  std::copy(header.begin(), header.end(), packet.begin());
}

Result<bool> Gate::TrySend(std::string_view packet) {
  Status sent = sys::SendPacket(fd(), packet);
  if (sent.ok()) return true;
  if (sent.error().err == EAGAIN) return false;
  return std::move(sent).error();
}

Result<bool> Gate::Receive(cell::FrameReader::Message& message) {
  sys::Packet packet = TRY(sys::ReceivePacket(fd(), Buffer(), false));
  if (packet.size == 0) return Error(Kind::kSystem, "the gate was closed by the other side");
  return reader_.Take(std::string_view(Buffer().data(), packet.size), message);
}

Result<cell::FrameReader::Message> Gate::Wait() {
  cell::FrameReader::Message message;
  while (true) {
    TRY(sys::Poll(fd(), POLLIN, -1));
    Result<bool> whole = Receive(message);
    if (!whole.ok() && whole.error().err == EAGAIN) continue;
    if (TRY(std::move(whole))) return message;
  }
}

}  // namespace taskcell::init
