// The network that tests of AI programs run in must lead nowhere.
#include "tests/support/own_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "launcher/base/unique_fd.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

// errno of a UDP socket's connect, which looks a route up and sends nothing; 0: there is a way.
int WayTo(const char* address) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  struct sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(443);
  (void)::inet_pton(AF_INET, address, &to.sin_addr);
  const void* generic = &to;
  return ::connect(socket.get(), static_cast<const struct sockaddr*>(generic), sizeof to) == 0
             ? 0
             : errno;
}

TEST(OwnNetworkTest, NothingButLoopbackCanBeReachedFromIt) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, for a network namespace");
  EXPECT_EQ(InChild([] {
              if (!EnterOwnNetwork().ok()) return 90;
              if (WayTo("127.0.0.1") != 0) return 91;
              return WayTo("192.0.2.1");
            }),
            ENETUNREACH);
}

TEST(OwnNetworkTest, WhatIsStartedFromItIsInItAndEnteringAgainChangesNothing) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, for a network namespace");
  const Outcome before = test::Run({"readlink", "/proc/self/ns/net"});
  EXPECT_EQ(InChild([&] {
              if (!EnterOwnNetwork().ok()) return 90;
              const Outcome first = test::Run({"readlink", "/proc/self/ns/net"});
              if (!EnterOwnNetwork().ok()) return 91;
              const Outcome again = test::Run({"readlink", "/proc/self/ns/net"});
              if (first.out == before.out) return 92;
              return first.out == again.out ? 0 : 93;
            }),
            0);
}

TEST(OwnNetworkTest, AChildMayGoBackToWhereTheProcessWas) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, for a network namespace");
  const Outcome before = test::Run({"readlink", "/proc/self/ns/net"});
  EXPECT_EQ(InChild([&] {
              if (!EnterOwnNetwork().ok()) return 90;
              RunOptions back;
              back.in_child = ReturnToFirstNetwork;
              if (test::Run({"readlink", "/proc/self/ns/net"}, back).out != before.out) return 91;
              return test::Run({"readlink", "/proc/self/ns/net"}).out == before.out ? 92 : 0;
            }),
            0);
}

}  // namespace
}  // namespace taskcell::test
