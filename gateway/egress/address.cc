#include "gateway/egress/address.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace taskcell::gateway {
namespace {

struct Ipv4Range {
  uint32_t network;
  int bits;
};

constexpr uint32_t Ipv4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

// Not globally reachable, RFC 6890 and successors; 100.64/10 holds 100.100.100.200 (a metadata
// service), 168.63.129.16 is another one on a public address.
constexpr Ipv4Range kSpecialIpv4[] = {
    {Ipv4(0, 0, 0, 0), 8},        {Ipv4(10, 0, 0, 0), 8},      {Ipv4(100, 64, 0, 0), 10},
    {Ipv4(169, 254, 0, 0), 16},   {Ipv4(172, 16, 0, 0), 12},   {Ipv4(192, 0, 0, 0), 24},
    {Ipv4(192, 0, 2, 0), 24},     {Ipv4(192, 88, 99, 0), 24},  {Ipv4(192, 168, 0, 0), 16},
    {Ipv4(198, 18, 0, 0), 15},    {Ipv4(198, 51, 100, 0), 24}, {Ipv4(203, 0, 113, 0), 24},
    {Ipv4(168, 63, 129, 16), 32}, {Ipv4(224, 0, 0, 0), 3},
};

struct Ipv6Range {
  uint8_t network[16];
  int bits;
};

// Within 2000::/3, the only globally routed part.
constexpr Ipv6Range kSpecialIpv6[] = {
    {{0x20, 0x01, 0x00}, 23},        // IETF assignments, Teredo
    {{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
    {{0x20, 0x02}, 16},              // 6to4: embeds an IPv4 address
    {{0x3f, 0xff, 0x00}, 20},        // documentation
};

bool HasPrefix(std::span<const uint8_t, 16> address, const Ipv6Range& range) {
  for (int bit = 0; bit < range.bits; ++bit) {
    auto byte = static_cast<std::size_t>(bit / 8);
    int mask = 0x80 >> (bit % 8);
    if ((address[byte] & mask) != (range.network[byte] & mask)) return false;
  }
  return true;
}

}  // namespace

AddressKind ClassifyIpv4(std::span<const uint8_t, 4> address) {
  uint32_t value = Ipv4(address[0], address[1], address[2], address[3]);
  if (address[0] == 127) return AddressKind::kLoopback;
  for (const Ipv4Range& range : kSpecialIpv4) {
    uint32_t mask = ~uint32_t{0} << (32 - range.bits);
    if ((value & mask) == range.network) return AddressKind::kSpecial;
  }
  return AddressKind::kPublic;
}

AddressKind ClassifyIpv6(std::span<const uint8_t, 16> address) {
  constexpr uint8_t kLoopback[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  if (std::equal(address.begin(), address.end(), std::begin(kLoopback)))
    return AddressKind::kLoopback;
  // Mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96), ULA, link-local and multicast lie outside.
  if ((address[0] & 0xe0) != 0x20) return AddressKind::kSpecial;
  bool is_special =
      std::any_of(std::begin(kSpecialIpv6), std::end(kSpecialIpv6),
                  [address](const Ipv6Range& range) { return HasPrefix(address, range); });
  return is_special ? AddressKind::kSpecial : AddressKind::kPublic;
}

AddressKind Classify(const struct sockaddr* address, socklen_t size) {
  if (address->sa_family == AF_INET && size >= sizeof(struct sockaddr_in)) {
    struct sockaddr_in ipv4 = {};
    std::memcpy(&ipv4, address, sizeof ipv4);
    uint8_t bytes[4];
    std::memcpy(bytes, &ipv4.sin_addr, sizeof bytes);
    return ClassifyIpv4(bytes);
  }
  if (address->sa_family == AF_INET6 && size >= sizeof(struct sockaddr_in6)) {
    struct sockaddr_in6 ipv6 = {};
    std::memcpy(&ipv6, address, sizeof ipv6);
    uint8_t bytes[16];
    std::memcpy(bytes, &ipv6.sin6_addr, sizeof bytes);
    return ClassifyIpv6(bytes);
  }
  return AddressKind::kSpecial;
}

}  // namespace taskcell::gateway
