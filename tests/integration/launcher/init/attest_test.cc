#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "launcher/base/text.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/denied_calls.h"
#include "launcher/sys/file.h"
#include "launcher/sys/listener.h"
#include "launcher/sys/socket.h"
#include "tests/integration/launcher/init/init_cell.h"

namespace taskcell::test {
namespace {

using ::testing::HasSubstr;

TEST(AttestTest, IdsCapabilitiesAndNamesAreThoseOfTheCell) {
  InitCell cell;
  cell::InsideAttestation seen = cell.Attestation();
  EXPECT_EQ(seen.pid, 1);
  for (uint32_t id : seen.uids) EXPECT_EQ(id, 65533U);
  for (uint32_t id : seen.gids) EXPECT_EQ(id, 65533U);
  EXPECT_TRUE(seen.groups.empty());
  for (uint64_t set : seen.capabilities) EXPECT_EQ(set, 0U);
  EXPECT_TRUE(seen.no_new_privileges);
  EXPECT_FALSE(seen.dumpable);
  EXPECT_EQ(seen.hostname, "taskcell");
  EXPECT_EQ(seen.working_directory, "/");
  EXPECT_EQ(seen.environment_names, std::vector<std::string>{"PATH"});
}

TEST(AttestTest, TheWitnessTriedEveryRowAndEachWasDenied) {
  InitCell cell;
  cell::InsideAttestation seen = cell.Attestation();
  EXPECT_EQ(seen.witness_seccomp_mode, 2U);
  EXPECT_EQ(seen.landlock_applied, seen.landlock_abi > 0);
  EXPECT_EQ(seen.witness_core, cell::kCoreBytes);
  std::size_t rows = 0;
  for (const cell::DeniedCallRule& rule : cell::DeniedCallRules()) {
    if (!cell::RuleApplies(rule, seen.landlock_abi)) continue;
    ++rows;
    auto row = std::find_if(seen.denied_calls.begin(), seen.denied_calls.end(),
                            [&](const auto& call) { return call.name == rule.name; });
    ASSERT_NE(row, seen.denied_calls.end()) << rule.name;
    EXPECT_TRUE(cell::IsDenied(rule, row->result)) << rule.name << ": " << row->result;
  }
  EXPECT_EQ(seen.denied_calls.size(), rows);
}

// The children of a process, as the host numbers them.
std::string Children(pid_t pid) {
  std::string file = Text("/proc/", pid, "/task/", pid, "/children");
  return std::string(Trim(sys::ReadFile(AT_FDCWD, file, 4096).value()));
}

TEST(AttestTest, TheWitnessIsTheProcessThatBecomesTheJob) {
  InitCell cell;
  (void)cell.Attestation();
  std::string witness = Children(cell.pid());
  ASSERT_TRUE(ParseUnsigned(witness)) << witness;  // one, and nobody else
  ASSERT_TRUE(cell.Start(Shell("echo $$; exec sleep 1000")));
  EXPECT_EQ(Children(cell.pid()), witness);
}

TEST(AttestTest, NobodyLooksIntoTheWitnessWhileItWaits) {
  InitCell cell;
  (void)cell.Attestation();
  struct stat info = {};
  // What belongs to root belongs to a process that is not dumpable.
  ASSERT_EQ(::stat(Text("/proc/", Children(cell.pid()), "/mem").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
  ASSERT_TRUE(cell.Start(Shell("sleep 1000")));
  ASSERT_EQ(::stat(Text("/proc/", Children(cell.pid()), "/mem").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 65533U);
}

TEST(AttestTest, NobodyElseIsThereAndOnlyTheDevicesOfDev) {
  InitCell cell;
  cell::InsideAttestation seen = cell.Attestation();
  EXPECT_TRUE(seen.processes.empty());
  std::map<std::string, uint64_t> devices;
  for (const cell::DeviceSeen& device : seen.devices) devices[device.path] = device.number;
  EXPECT_EQ(devices, (std::map<std::string, uint64_t>{{"/dev/null", makedev(1, 3)},
                                                      {"/dev/zero", makedev(1, 5)},
                                                      {"/dev/full", makedev(1, 7)},
                                                      {"/dev/urandom", makedev(1, 9)}}));
}

TEST(AttestTest, AnotherProcessIsSeen) {
  InitCell::Setup setup;
  setup.extra_process = true;
  InitCell cell(setup);
  cell::InsideAttestation seen = cell.Attestation();
  ASSERT_EQ(seen.processes.size(), 1U);
  EXPECT_EQ(seen.processes[0].pid, 2);
  EXPECT_FALSE(seen.processes[0].name.empty());
}

TEST(AttestTest, AnotherDeviceIsSeenAlsoInADirectoryOfItsOwn) {
  InitCell::Setup setup;
  setup.extra_device = true;
  InitCell cell(setup);
  cell::InsideAttestation seen = cell.Attestation();
  auto extra = std::find_if(seen.devices.begin(), seen.devices.end(),
                            [](const auto& device) { return device.path == "/dev/extra/full"; });
  ASSERT_NE(extra, seen.devices.end());
  EXPECT_EQ(extra->mode, S_IFCHR | 0644U);
  EXPECT_EQ(extra->number, makedev(1, 7));
}

// What enters a cell between its attestation and its job is seen by init before the job exists.
TEST(AttestTest, AProcessThatComesAfterTheAttestationLetsNoJobStart) {
  InitCell cell;
  (void)cell.Attestation();
  sys::Child other;
  {
    sys::Pipe in_it = sys::MakePipe().value();
    sys::Cloned cloned = sys::CloneProcess(0).value();
    if (cloned.in_child) {
      if (::setns(cell.pidfd(), CLONE_NEWPID) != 0) sys::ExitNow(1);
      pid_t child = ::fork();
      if (child == 0) (void)sys::WriteAll(in_it.write_end.get(), "x");
      for (;;) ::pause();
    }
    other = std::move(cloned.child);
    in_it.write_end.Reset();
    ASSERT_EQ(sys::ReadAll(in_it.read_end.get(), 0).ok(), false) << "control: it is in the cell";
  }
  EXPECT_FALSE(cell.Start(Shell("echo ran")));
  InitCell::Output output = cell.Finish();
  ASSERT_TRUE(output.refusal);
  EXPECT_EQ(output.refusal->stage, "processes");
  EXPECT_THAT(output.refusal->text, HasSubstr("came into the cell from outside"));
  EXPECT_EQ(output.out, "");
}

TEST(AttestTest, MountsCarryTheInodeThatIsReallyThere) {
  InitCell cell;
  cell::InsideAttestation seen = cell.Attestation();
  struct stat usr = {};
  ASSERT_EQ(::stat("/usr", &usr), 0);
  auto at = [&](const char* target) {
    return std::find_if(seen.mounts.begin(), seen.mounts.end(),
                        [&](const auto& mount) { return mount.target == target; });
  };
  ASSERT_NE(at("/usr"), seen.mounts.end());
  EXPECT_EQ(at("/usr")->device, usr.st_dev);
  EXPECT_EQ(at("/usr")->inode, usr.st_ino);
  EXPECT_EQ(at("/usr")->mode, usr.st_mode);
  ASSERT_NE(at("/"), seen.mounts.end());
  EXPECT_TRUE(S_ISDIR(at("/")->mode));
  EXPECT_THAT(seen.mountinfo, HasSubstr(" /workspace "));
  auto tmpfs = std::find_if(seen.tmpfs.begin(), seen.tmpfs.end(),
                            [](const auto& each) { return each.target == "/tmp"; });
  ASSERT_NE(tmpfs, seen.tmpfs.end());
  EXPECT_EQ(tmpfs->size_bytes, 64U << 20U);
}

TEST(AttestTest, OnlyLoopbackAndTheGateAreThere) {
  InitCell cell;
  cell::InsideAttestation seen = cell.Attestation();
  bool lo = false;
  for (const cell::InterfaceSeen& interface : seen.interfaces) {
    if (interface.name == "lo") lo = (interface.flags & IFF_UP) != 0;
    if (interface.name != "lo") {
      EXPECT_EQ(interface.flags & IFF_UP, 0U) << interface.name;
    }
  }
  EXPECT_TRUE(lo);
  ASSERT_EQ(seen.descriptors.size(), 4U);
  EXPECT_EQ(seen.descriptors[3].fd, 3);
  EXPECT_TRUE(S_ISSOCK(seen.descriptors[3].mode));
}

TEST(AttestTest, ADescriptorThatLeakedIsSeen) {
  InitCell::Setup setup;
  setup.limit_text = "32\n";
  InitCell cell(setup);
  cell::InsideAttestation seen = cell.Attestation();
  ASSERT_EQ(seen.descriptors.size(), 5U);
  EXPECT_EQ(seen.descriptors[4].access, static_cast<uint32_t>(O_RDONLY));
  EXPECT_EQ(seen.limits.pids, 32U);
}

TEST(AttestTest, ALimitOfMaxIsUnlimited) {
  InitCell::Setup setup;
  setup.limit_text = "max\n";
  InitCell cell(setup);
  EXPECT_EQ(cell.Attestation().limits.pids, cell::LimitsSeen::kUnlimited);
}

TEST(AttestTest, ALimitFileThatHoldsNoNumberEndsTheCell) {
  InitCell::Setup setup;
  setup.limit_text = "many\n";
  InitCell cell(setup);
  std::optional<cell::FrameReader::Message> message = cell.Next();
  ASSERT_TRUE(message);
  ASSERT_EQ(message->type, cell::FrameType::kRefused);
  EXPECT_THAT(cell::ParseRefusal(message->payload).value().text, HasSubstr("'many'"));
  cell.CloseGate();
  EXPECT_EQ(cell.Wait(), 125);
}

TEST(AttestTest, AWritableRootIsFoundByTheWitness) {
  InitCell::Setup setup;
  setup.writable_root = true;
  InitCell cell(setup);
  cell::InsideAttestation seen = cell.Attestation();
  for (const cell::DeniedCall& call : seen.denied_calls) {
    if (call.name != "write /") continue;
    // The root belongs to root and Landlock stands in the way too: what matters is that it is not
    // the one outcome of a read-only root.
    EXPECT_NE(call.result, 30 /* EROFS */);
    return;
  }
  FAIL() << "no row 'write /'";
}

TEST(AttestTest, TheFileLimitIsTheOneAskedFor) {
  InitCell::Setup setup;
  setup.nofile = 99;
  InitCell cell(setup);
  EXPECT_EQ(cell.Attestation().witness_nofile, 99U);
}

TEST(AttestTest, TheListenerIsHandedOutAndNotKept) {
  InitCell::Setup setup;
  setup.listen = true;
  InitCell cell(setup);
  std::optional<cell::FrameReader::Message> first = cell.Next();
  ASSERT_TRUE(first);
  ASSERT_EQ(first->type, cell::FrameType::kListener);
  uint16_t port = cell::ParsePorts(first->payload)->broker;
  cell::InsideAttestation seen = cell.Attestation();
  EXPECT_EQ(seen.listener_port, port);
  EXPECT_EQ(seen.descriptors.size(), 4U);
  EXPECT_TRUE(cell.TakeListener().valid());
}

TEST(AttestTest, BothListenersAreHandedOutInOneMessageAndNotKept) {
  InitCell::Setup setup;
  setup.by_path = true;  // where sockets that stay would be seen
  setup.listen = true;
  setup.tunnels = true;
  InitCell cell(setup);
  std::optional<cell::FrameReader::Message> first = cell.Next();
  ASSERT_TRUE(first);
  ASSERT_EQ(first->type, cell::FrameType::kListener);
  cell::ListenerPorts ports = cell::ParsePorts(first->payload).value();
  UniqueFd tunnel = cell.TakeTunnelListener();
  cell::InsideAttestation seen = cell.Attestation();
  EXPECT_EQ(seen.listener_port, ports.broker);
  EXPECT_EQ(seen.tunnel_port, ports.tunnel);
  EXPECT_EQ(sys::LoopbackListenerPort(cell.TakeListener().get()).value(), ports.broker);
  EXPECT_EQ(sys::LoopbackListenerPort(tunnel.get()).value(), ports.tunnel);
  EXPECT_EQ(seen.descriptors.size(), 4U);
  EXPECT_TRUE(seen.sockets.empty());
}

TEST(AttestTest, TheGateCanBeASocketInTheFileSystem) {
  InitCell::Setup setup;
  setup.by_path = true;
  InitCell cell(setup);
  cell::InsideAttestation seen = cell.Attestation();
  EXPECT_EQ(seen.pid, 1);
}

TEST(AttestTest, EveryNamespaceIsToldByTheInodeItHasForTheHost) {
  InitCell cell;
  cell::InsideAttestation seen = cell.Attestation();
  for (std::size_t index = 0; index < cell::kNamespaces.size(); ++index) {
    std::string_view name = cell::kNamespaces[index];
    if (name == "time") name = "time_for_children";
    std::string file = Text("/proc/", cell.pid(), "/ns/", name);
    struct stat info = {};
    ASSERT_EQ(::stat(file.c_str(), &info), 0) << file;
    EXPECT_EQ(seen.namespaces[index].inode, info.st_ino) << file;
    EXPECT_EQ(seen.namespaces[index].device, info.st_dev) << file;
  }
}

// The gate, its other end and the listener are in the cell's network namespace too.
TEST(AttestTest, NoSocketOrIpcObjectOfOthersIsInAFreshCellOfAnEngine) {
  for (bool listen : {false, true}) {
    InitCell::Setup setup;
    setup.by_path = true;
    setup.listen = listen;
    InitCell cell(setup);
    cell::InsideAttestation seen = cell.Attestation();
    EXPECT_TRUE(seen.sockets.empty()) << seen.sockets[0].table << " " << seen.sockets.size();
    EXPECT_TRUE(seen.ipc_objects.empty()) << seen.ipc_objects[0];
  }
}

TEST(AttestTest, ASocketInASharedNetworkNamespaceIsSeen) {
  sys::LoopbackListener listener = sys::ListenLoopback().value();
  InitCell::Setup setup;
  setup.by_path = true;
  setup.host_network = true;
  InitCell cell(setup);
  cell::InsideAttestation seen = cell.Attestation();
  ASSERT_FALSE(seen.sockets.empty());
  EXPECT_EQ(seen.sockets[0].table, "tcp");
}

}  // namespace
}  // namespace taskcell::test
