#include "gateway/egress/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/un.h>

namespace taskcell::gateway {
namespace {

AddressKind Of(const char* text) {
  uint8_t ipv4[4];
  uint8_t ipv6[16];
  if (::inet_pton(AF_INET, text, ipv4) == 1) return ClassifyIpv4(ipv4);
  EXPECT_EQ(::inet_pton(AF_INET6, text, ipv6), 1) << text;
  return ClassifyIpv6(ipv6);
}

TEST(AddressTest, PublicAddresses) {
  for (const char* text : {"1.1.1.1",
                           "9.255.255.255",
                           "11.0.0.0",
                           "100.63.255.255",
                           "100.128.0.0",
                           "126.255.255.255",
                           "128.0.0.0",
                           "169.253.255.255",
                           "169.255.0.0",
                           "172.15.255.255",
                           "172.32.0.0",
                           "192.167.255.255",
                           "192.169.0.0",
                           "198.17.255.255",
                           "198.20.0.0",
                           "223.255.255.255",
                           "168.63.129.15",
                           "2606:4700::1111",
                           "2001:4860:4860::8888",
                           "2a00::1"})
    EXPECT_EQ(Of(text), AddressKind::kPublic) << text;
}

TEST(AddressTest, LoopbackAddresses) {
  for (const char* text : {"127.0.0.1", "127.0.0.0", "127.255.255.255", "::1"})
    EXPECT_EQ(Of(text), AddressKind::kLoopback) << text;
}

TEST(AddressTest, EverythingElseIsSpecial) {
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.0",
                           "10.255.255.255",
                           "100.64.0.0",
                           "100.100.100.200",
                           "100.127.255.255",
                           "169.254.169.254",
                           "172.16.0.0",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.0.0",
                           "192.168.255.255",
                           "198.18.0.0",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.1",
                           "168.63.129.16",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::2",
                           "::ffff:1.1.1.1",
                           "::ffff:127.0.0.1",
                           "::1.1.1.1",
                           "64:ff9b::1.1.1.1",
                           "64:ff9b:1::1",
                           "100::1",
                           "2001:db8::1",
                           "2001::1",
                           "2001:1ff::1",
                           "2002:7f00:1::",
                           "3fff::1",
                           "fc00::1",
                           "fd00:ec2::254",
                           "fdff::1",
                           "fe80::1",
                           "fec0::1",
                           "ff02::1"})
    EXPECT_EQ(Of(text), AddressKind::kSpecial) << text;
}

TEST(AddressTest, OtherFamiliesAreSpecial) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const void* generic = &address;
  EXPECT_EQ(Classify(static_cast<const struct sockaddr*>(generic), sizeof address),
            AddressKind::kSpecial);
}

}  // namespace
}  // namespace taskcell::gateway
