#include "gateway/runtimes/loop/exchange.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "gateway/runtimes/loop/http_response.h"
#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/loopback.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway::loop {
namespace {

using Clock = std::chrono::steady_clock;

bool IsPathByte(char c) {
  constexpr std::string_view kOthers = "/-._~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kOthers.find(c) != std::string_view::npos;
}

std::string Head(const Peer& peer, std::string_view path, std::string_view key, std::size_t size) {
  return Text("POST ", peer.path, path, " HTTP/1.1\r\nhost: 127.0.0.1:", peer.port,
              "\r\nauthorization: Bearer ", key,
              "\r\ncontent-type: application/json\r\naccept: application/json\r\n"
              "accept-encoding: identity\r\nuser-agent: taskcell-loop/" TASKCELL_VERSION
              "\r\nconnection: close\r\ncontent-length: ",
              size, "\r\n\r\n");
}

// Sends what is left of `request` and reads what has come. True once the answer is whole.
Result<bool> Step(int fd, std::string_view& request, HttpResponseReader& reader, int timeout_ms) {
  auto events = static_cast<short>(request.empty() ? POLLIN : POLLIN | POLLOUT);
  short ready = TRY(sys::Poll(fd, events, timeout_ms));
  if (ready == 0) return Error(Kind::kSystem, "the provider did not answer in time");
  if ((ready & POLLIN) != 0 || (ready & POLLOUT) == 0) {
    std::array<char, 65536> buffer;
    std::size_t size = TRY(sys::Read(fd, buffer));
    if (size > 0) return reader.Take(std::string_view(buffer.data(), size));
    TRY(reader.End());
    return true;
  }
  request.remove_prefix(TRY(sys::SendSome(fd, request)));
  return false;
}

}  // namespace

Result<Peer> ParsePeer(std::string_view base_url) {
  constexpr std::string_view kStart = "http://127.0.0.1:";
  Error bad(Kind::kUsage, Text("OPENAI_BASE_URL must be http://127.0.0.1:PORT[/path], not `",
                               Printable(base_url.substr(0, 200)), "`"));
  if (base_url.substr(0, kStart.size()) != kStart) return bad;
  std::string_view rest = base_url.substr(kStart.size());
  std::string_view digits = rest.substr(0, rest.find('/'));
  std::optional<uint64_t> port = ParseUnsigned(digits);
  if (!port || *port == 0 || *port > 65535) return bad;
  std::string path(rest.substr(digits.size()));
  while (!path.empty() && path.back() == '/') path.pop_back();
  if (!std::all_of(path.begin(), path.end(), IsPathByte)) return bad;
  return Peer{static_cast<uint16_t>(*port), std::move(path)};
}

Result<HttpAnswer> Post(const Peer& peer, std::string_view path, std::string_view key,
                        std::string_view json, int timeout_ms) {
  Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  UniqueFd fd = TRY(sys::ConnectLoopback(peer.port));
  std::string request = Head(peer, path, key, json.size());
  request += json;
  std::string_view left = request;
  HttpResponseReader reader;
  for (bool whole = false; !whole;) {
    auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    whole = TRY(Step(fd.get(), left, reader, static_cast<int>(std::max<int64_t>(0, rest.count()))));
  }
  return HttpAnswer{reader.status(), reader.body()};
}

}  // namespace taskcell::gateway::loop
