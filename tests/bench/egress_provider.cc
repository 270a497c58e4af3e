#include "tests/bench/egress_provider.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/bench/channel.h"

namespace taskcell::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

std::string Hex(std::size_t value) {
  std::string digits;
  for (; value > 0; value /= 16) digits.insert(digits.begin(), "0123456789abcdef"[value % 16]);
  return digits;
}

std::string Chunk(std::string_view data) { return Text(Hex(data.size()), "\r\n", data, "\r\n"); }

std::string Head(std::string_view type) {
  return Text("HTTP/1.1 200 OK\r\nContent-Type: ", type, "\r\nTransfer-Encoding: chunked\r\n\r\n");
}

// An event as providers send them for one token.
std::string Event() {
  return Chunk(
      "data: {\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\","
      "\"created\":1760000000,\"model\":\"test-model\",\"choices\":[{\"index\":0,\"delta\":"
      "{\"content\":\" word\"},\"finish_reason\":null}]}\n\n");
}

// Each event on its own, one every `pace`.
bool SendEvents(Channel& peer, int count, Clock::duration pace) {
  const std::string event = Event();
  Clock::time_point next = Clock::now();
  for (int sent = 0; sent < count; ++sent) {
    if (!peer.Send(event)) return false;
    next += pace;
    if (pace.count() > 0) std::this_thread::sleep_until(next);
  }
  return true;
}

bool SendLarge(Channel& peer) {
  const std::string piece = Chunk(std::string(kPieceBytes, 'x'));
  for (std::size_t sent = 0; sent < kLargeBytes; sent += kPieceBytes)
    if (!peer.Send(piece)) return false;
  return true;
}

bool Answer(Channel& peer, std::string_view path) {
  constexpr std::chrono::microseconds kSecond{1'000'000};
  if (path.starts_with(kLarge))
    return peer.Send(Head("application/json")) && SendLarge(peer) && peer.Send(kLastChunk);
  const std::string head = Head("text/event-stream");
  if (path.starts_with(kFirst)) return peer.Send(Text(head, Event(), kLastChunk));
  if (!peer.Send(head)) return false;
  bool done = path.starts_with(kBurst) ? SendEvents(peer, kEvents, Clock::duration::zero())
              : path.starts_with(kPaced)
                  ? SendEvents(peer, kEvents, kSecond / 1000)
                  : SendEvents(peer, kLiveEvents * kLiveSeconds, kSecond / kLiveEvents);
  return done && peer.Send(kLastChunk);
}

// Reads one request with a Content-Length after another.
void Serve(Channel peer) {
  std::vector<char> buffer(std::size_t{256} << 10);
  std::string in;
  while (peer.is_open()) {
    std::size_t end = 0;
    while ((end = in.find("\r\n\r\n")) == std::string::npos) {
      std::string_view got = peer.Receive(buffer);
      if (got.empty()) return;
      in += got;
    }
    const std::string head = Lower(in.substr(0, end));
    const std::string path = in.substr(in.find(' ') + 1, end);
    constexpr std::string_view kLength = "content-length: ";
    std::string_view length = std::string_view(head).substr(head.find(kLength) + kLength.size());
    std::size_t left = ParseUnsigned(length.substr(0, length.find('\r'))).value_or(0);
    for (left -= in.size() - end - 4; left > 0;) {
      std::string_view got = peer.Receive(buffer);
      if (got.empty()) return;
      left -= got.size();
    }
    in.clear();
    if (!Answer(peer, path)) return;
  }
}

[[noreturn]] void Run(int listener, const std::string& certificate) {
  SslContext context;
  if (!certificate.empty()) context = ServerContext(certificate);
  while (true) {
    Channel peer = Channel::Accept(listener, context.get());
    if (peer.is_open()) std::thread(Serve, std::move(peer)).detach();
  }
}

}  // namespace

EgressProvider::EgressProvider(const std::string& certificate) {
  Result<sys::LoopbackListener> listener = sys::ListenLoopback();
  if (!listener.ok()) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // ignoring: the destructor ends it as well
    (void)::signal(SIGPIPE, SIG_IGN);          // ignoring: then it ends with a client
    Run(listener->fd.get(), certificate);
  }
  if (pid_ > 0) port_ = listener->port;
}

EgressProvider::~EgressProvider() {
  if (pid_ <= 0) return;
  (void)::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
}

}  // namespace taskcell::bench
