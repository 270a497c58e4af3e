#include "launcher/cell/attestation.h"

#include <gtest/gtest.h>

namespace taskcell::cell {
namespace {

InsideAttestation SampleAttestation() {
  InsideAttestation seen;
  seen.pid = 1;
  seen.uids = {1, 2, 3, 4};
  seen.gids = {5, 6, 7, 8};
  seen.groups = {9};
  seen.capabilities = {1, 2, 3, 4, ~uint64_t{0}};
  seen.no_new_privileges = true;
  seen.dumpable = false;
  seen.denied_calls = {{"mount", 1}, {"int 0x80", -31}};
  seen.witness_seccomp_mode = 2;
  seen.landlock_abi = 7;
  seen.landlock_applied = true;
  seen.witness_nofile = 1024;
  seen.witness_core = 1;
  seen.settings = {022, 8, 0xEF, 3, 2, {0, 0, 0, 819200, 4096, 8388608}};
  seen.mountinfo = "24 1 0:22 / / ro - tmpfs tmpfs ro\n";
  seen.mounts = {{"/", 22, 1, 040755, 0}, {"/x", 0, 0, 0, 40}};
  seen.tmpfs = {{"/tmp", 4096}};
  seen.limits.memory_bytes = 4096;
  seen.limits.pids = LimitsSeen::kUnlimited;
  seen.interfaces = {{"lo", 0x49}};
  seen.routes = "Iface";
  seen.descriptors = {{3, "socket:[1]", 0140777, 2, 0x534f434b, 7, true, true}};
  seen.processes = {{7, "sh"}};
  seen.devices = {{"/dev/null", 020666, 0x103}};
  seen.namespaces[6] = {4, 4026531837};
  seen.sockets = {{"tcp", 12}};
  seen.ipc_objects = {"shm"};
  seen.environment_names = {"PATH"};
  seen.hostname = "taskcell";
  seen.working_directory = "/";
  seen.listener_port = 4711;
  seen.tunnel_port = 4712;
  return seen;
}

TEST(AttestationTest, ItComesBackAsItWasSent) {
  std::string bytes = EncodeAttestation(SampleAttestation());
  Result<InsideAttestation> back = ParseAttestation(bytes);
  ASSERT_TRUE(back.ok()) << back.error().text;
  EXPECT_EQ(EncodeAttestation(back.value()), bytes);
  EXPECT_EQ(back->uids[3], 4U);
  EXPECT_EQ(back->denied_calls.at(1).result, -31);
  EXPECT_EQ(back->limits.memory_bytes, 4096U);
  EXPECT_FALSE(back->limits.memory_and_swap_bytes.has_value());
  EXPECT_EQ(back->limits.pids, LimitsSeen::kUnlimited);
  EXPECT_EQ(back->descriptors.at(0).target, "socket:[1]");
  EXPECT_EQ(back->descriptors.at(0).device, 7U);
  EXPECT_TRUE(back->descriptors.at(0).terminal);
  EXPECT_TRUE(back->descriptors.at(0).receives);
  EXPECT_EQ(back->processes.at(0).pid, 7);
  EXPECT_EQ(back->processes.at(0).name, "sh");
  EXPECT_EQ(back->devices.at(0).path, "/dev/null");
  EXPECT_EQ(back->devices.at(0).number, 0x103U);
  EXPECT_EQ(back->namespaces[6].device, 4U);
  EXPECT_EQ(back->namespaces[6].inode, 4026531837U);
  EXPECT_EQ(back->sockets.at(0).table, "tcp");
  EXPECT_EQ(back->sockets.at(0).inode, 12U);
  EXPECT_EQ(back->ipc_objects.at(0), "shm");
}

TEST(AttestationTest, EveryTruncationAndAnyTrailingByteIsRefused) {
  std::string bytes = EncodeAttestation(SampleAttestation());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(ParseAttestation(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseAttestation(bytes + '\0').ok());
}

TEST(AttestationTest, OneMebibyteIsTheMost) {
  InsideAttestation seen = SampleAttestation();
  seen.mountinfo.clear();
  seen.mountinfo.assign(kMaxAttestationBytes - EncodeAttestation(seen).size(), 'm');
  EXPECT_TRUE(ParseAttestation(EncodeAttestation(seen)).ok());
  seen.mountinfo += 'm';
  EXPECT_FALSE(ParseAttestation(EncodeAttestation(seen)).ok());
}

TEST(AttestationTest, ThereAreAlwaysFourIds) {
  std::string bytes = EncodeAttestation(SampleAttestation());
  ASSERT_EQ(bytes[8], 4);  // after the tag and the pid: the number of uids
  bytes[8] = 3;
  EXPECT_FALSE(ParseAttestation(bytes).ok());
}

}  // namespace
}  // namespace taskcell::cell
