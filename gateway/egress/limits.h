#pragma once

#include <cstddef>
#include <cstdint>

namespace taskcell::gateway {

// What one cell may use of the broker. Every bound holds for one attached cell alone; a value is
// the most that is still allowed.
inline constexpr std::size_t kEgressConnections = 64;               // open at one time
inline constexpr uint64_t kEgressRequests = 10'000;                 // in the cell's whole life
inline constexpr std::size_t kEgressBodyBytes = 32U << 20;          // one request's body
inline constexpr std::size_t kEgressHeadBytes = 32U << 10;          // request line and headers
inline constexpr std::size_t kEgressHeaders = 100;                  // header lines of a request
inline constexpr uint64_t kEgressBytesUp = 256ULL << 20;            // all bytes from the cell
inline constexpr uint64_t kEgressBytesDown = 256ULL << 20;          // all body bytes to the cell
inline constexpr std::size_t kEgressHeldBodyBytes = 64U << 20;      // bodies in memory at one time
inline constexpr std::size_t kEgressUpstreamHeadBytes = 32U << 10;  // headers of an answer
inline constexpr std::size_t kEgressEventBytes = 4U << 20;          // one answer or event read
inline constexpr std::size_t kEgressJsonDepth = 64;                 // nesting of a request body
inline constexpr std::size_t kEgressJsonNodes = 1'000'000;          // values in a request body
inline constexpr std::size_t kEgressJudgedBytes = 1024;             // of each string of a body
inline constexpr std::size_t kEgressTools = 256;                    // tools in one request
inline constexpr std::size_t kEgressTunnels = 200;  // tunnels in a record, one by one

inline constexpr int kEgressConnectSeconds = 20;        // until the provider is connected
inline constexpr int kEgressUpstreamIdleSeconds = 300;  // the provider says nothing
inline constexpr int kEgressRequestSeconds = 60;        // a request once begun is not finished
inline constexpr int kEgressClientStallSeconds = 300;   // the cell reads nothing of an answer
inline constexpr int kEgressKeepAliveSeconds = 600;     // a connection without a request
inline constexpr int kEgressHelloSeconds = 15;          // a tunnel without a ClientHello
inline constexpr int kEgressTunnelIdleSeconds = 300;    // nothing moves in a tunnel

// The bounds as values, so that a test can lower one.
struct EgressLimits {
  std::size_t connections = kEgressConnections;
  uint64_t requests = kEgressRequests;
  std::size_t body_bytes = kEgressBodyBytes;
  uint64_t bytes_up = kEgressBytesUp;
  uint64_t bytes_down = kEgressBytesDown;
  std::size_t held_body_bytes = kEgressHeldBodyBytes;
  int connect_seconds = kEgressConnectSeconds;
  int upstream_idle_seconds = kEgressUpstreamIdleSeconds;
  int request_seconds = kEgressRequestSeconds;
  int client_stall_seconds = kEgressClientStallSeconds;
  int keep_alive_seconds = kEgressKeepAliveSeconds;
  int hello_seconds = kEgressHelloSeconds;
  int tunnel_idle_seconds = kEgressTunnelIdleSeconds;
};

}  // namespace taskcell::gateway
