#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>

namespace taskcell::gateway {

// What kind of place an IP address is, by the IANA special-purpose registries.
enum class AddressKind {
  kPublic,
  kLoopback,  // 127.0.0.0/8, ::1
  kSpecial,   // private, link-local, CGNAT, metadata, multicast, documentation, benchmark,
              // reserved, and every form that embeds an IPv4 address or may lead to one
};

AddressKind ClassifyIpv4(std::span<const uint8_t, 4> address);
AddressKind ClassifyIpv6(std::span<const uint8_t, 16> address);

// Classifies a socket address; another family than IPv4 and IPv6 is kSpecial.
AddressKind Classify(const struct sockaddr* address, socklen_t size);

}  // namespace taskcell::gateway
