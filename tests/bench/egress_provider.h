#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace taskcell::bench {

// What the provider answers with is named by the first part of a request's path.
inline constexpr std::string_view kFirst = "/first";  // one event
inline constexpr std::string_view kBurst = "/burst";  // kEvents of them as fast as they go
inline constexpr std::string_view kPaced = "/paced";  // one a millisecond, kEvents in all
inline constexpr std::string_view kLive = "/live";    // 20 a second for kLiveSeconds
inline constexpr std::string_view kLarge = "/large";  // kLargeBytes of no events

inline constexpr int kEvents = 1000;
inline constexpr int kLiveEvents = 20;  // a second
inline constexpr int kLiveSeconds = 10;
inline constexpr std::size_t kLargeBytes = std::size_t{256} << 20;
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// A provider of the chat API on loopback that costs next to nothing; a process that ends with this
// one.
class EgressProvider {
 public:
  // With the PEM file of a certificate and its key it speaks TLS.
  explicit EgressProvider(const std::string& certificate = "");
  ~EgressProvider();
  EgressProvider(const EgressProvider&) = delete;
  EgressProvider& operator=(const EgressProvider&) = delete;

  uint16_t port() const { return port_; }  // 0: it could not be started

 private:
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

}  // namespace taskcell::bench
