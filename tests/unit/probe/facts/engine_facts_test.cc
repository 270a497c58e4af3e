#include "probe/facts/engine_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/memory_host.h"

namespace taskcell::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kTcp =
    "  sl  local_address rem_address   st tx_queue\n"
    "   0: 0100007F:0947 00000000:0000 0A 00000000:00000000\n"
    "   1: 00000000:0948 00000000:0000 0A 00000000:00000000\n"
    "   2: 00000000:0016 00000000:0000 0A 00000000:00000000\n"
    "   3: 0100007F:0947 0100007F:8000 01 00000000:00000000\n";

TEST(DockerListenersTest, OnlyListenersOnItsPorts) {
  EXPECT_THAT(DockerListeners(kTcp), ElementsAre("127.0.0.1:2375", "0.0.0.0:2376"));
  EXPECT_THAT(DockerListeners("x\n1: 0947 0 0A\n1: :: 0 0A\n"), IsEmpty());
}

TEST(EngineFactsTest, SocketsWithOwnersAndWhoListens) {
  test::MemoryHost host;
  host.Socket("/run/docker.sock", 0, 0660);
  host.Socket("/run/user/1500/podman/podman.sock", 1500, 0600);
  host.Put("/run/podman/podman.sock", "no socket");
  host.Put("/proc/net/unix",
           "Num RefCount Protocol Flags Type St Inode Path\n"
           "0000000000000000: 00000002 00000000 00010000 0001 01 100 /var/run/docker.sock\n"
           "0000000000000000: 00000003 00000000 00000000 0001 03 101 "
           "/run/user/1500/podman/podman.sock\n");
  host.Put("/etc/group", "docker:x:999:agent1,ops\ndockerroot:x:998:x\n");
  EngineFacts facts = ReadEngineFacts(host, 1500);
  ASSERT_EQ(facts.sockets.size(), 2U);
  EXPECT_TRUE(facts.sockets[0].listening);
  EXPECT_FALSE(facts.sockets[0].rootless);
  EXPECT_FALSE(facts.sockets[1].listening);
  EXPECT_TRUE(facts.sockets[1].rootless);
  EXPECT_EQ(facts.docker_group, "agent1,ops");
}

}  // namespace
}  // namespace taskcell::probe
