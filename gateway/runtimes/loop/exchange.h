#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::gateway::loop {

inline constexpr int kRequestTimeoutMs = 120'000;

// The one peer: the broker, on the cell's loopback.
struct Peer {
  uint16_t port = 0;
  std::string path;  // "" or "/v1", without a trailing '/'
};

// Reads "http://127.0.0.1:PORT[/path]". Nothing else is a peer.
Result<Peer> ParsePeer(std::string_view base_url);

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Posts `json` to `path` below the peer's, on a connection of its own, and reads the answer, all
// within `timeout_ms`. A redirect is an answer like any other: nothing is followed.
Result<HttpAnswer> Post(const Peer& peer, std::string_view path, std::string_view key,
                        std::string_view json, int timeout_ms = kRequestTimeoutMs);

}  // namespace taskcell::gateway::loop
