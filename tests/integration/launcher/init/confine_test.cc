#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "launcher/base/text.h"
#include "launcher/sys/landlock.h"
#include "launcher/sys/socket.h"
#include "tests/integration/launcher/init/init_cell.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

using ::testing::HasSubstr;

constexpr int kAbiWithNet = 4;
constexpr int kAbiWithScope = 6;

TEST(ConfineTest, TheTaskWritesIntoItsTmpfsAndTheHarmlessDevices) {
  InitCell cell;
  InitCell::Output output = cell.Run(Shell(
      "set -e; mkdir /tmp/a /workspace/b; echo x > /tmp/a/f; mv /tmp/a/f /tmp/f; "
      "cp /bin/true /workspace/b/; /workspace/b/true; ln -s f /tmp/l; echo y >> /tmp/l; rm /tmp/l; "
      "echo z > /dev/null; head -c 10 /dev/urandom > /tmp/r; echo out > /proc/self/fd/1; echo "
      "done"));
  EXPECT_EQ(output.out, "out\ndone\n") << output.err;
}

// Attack: every other place to write to. The control is the test above.
TEST(ConfineTest, NothingElseCanBeWritten) {
  InitCell cell;
  InitCell::Output output = cell.Run(Shell(
      "for f in /x /usr/x /dev/x /proc/self/comm /proc/self/oom_score_adj "
      "/proc/sys/kernel/hostname; "
      "do (echo x > $f) 2>/dev/null && echo wrote $f; done; mkdir /y 2>/dev/null && echo made; "
      "echo end"));
  EXPECT_EQ(output.out, "end\n");
}

cell::Job Connect(uint16_t to, uint16_t allowed) {
  cell::Job job = Shell("");
  job.argv = {"bash", "-c", Text("exec 3<>/dev/tcp/127.0.0.1/", to, " && echo connected")};
  job.environment.emplace_back("LC_ALL=C");
  job.loopback_port = allowed;
  return job;
}

// The cell's listener on one port; a port next to it where nobody listens.
InitCell::Setup Listening() {
  InitCell::Setup setup;
  setup.listen = true;
  return setup;
}

TEST(ConfineTest, TheOnePortCanBeConnectedTo) {
  InitCell cell(Listening());
  uint16_t port = cell.Attestation().listener_port;
  ASSERT_TRUE(cell.Start(Connect(port, port)));
  EXPECT_EQ(cell.Finish().out, "connected\n");
}

TEST(ConfineTest, ThePortForTunnelsCanBeConnectedToAsWell) {
  InitCell::Setup setup = Listening();
  setup.tunnels = true;
  InitCell cell(setup);
  const cell::InsideAttestation seen = cell.Attestation();
  cell::Job job = Connect(seen.tunnel_port, seen.listener_port);
  job.tunnel_port = seen.tunnel_port;
  ASSERT_TRUE(cell.Start(job));
  EXPECT_EQ(cell.Finish().out, "connected\n");
}

TEST(ConfineTest, ThePortForTunnelsIsDeniedWhereTheJobHasNone) {
  TASKCELL_REQUIRE(sys::LandlockAbi() >= kAbiWithNet, "the kernel's Landlock has no network rules");
  InitCell::Setup setup = Listening();
  setup.tunnels = true;
  InitCell cell(setup);
  const cell::InsideAttestation seen = cell.Attestation();
  ASSERT_TRUE(cell.Start(Connect(seen.tunnel_port, seen.listener_port)));
  EXPECT_THAT(cell.Finish().err, HasSubstr("Permission denied"));
}

TEST(ConfineTest, AnyOtherPortIsDenied) {
  TASKCELL_REQUIRE(sys::LandlockAbi() >= kAbiWithNet, "the kernel's Landlock has no network rules");
  InitCell cell(Listening());
  uint16_t port = cell.Attestation().listener_port;
  ASSERT_TRUE(cell.Start(Connect(port, static_cast<uint16_t>(port - 1))));
  EXPECT_THAT(cell.Finish().err, HasSubstr("Permission denied"));
}

TEST(ConfineTest, WithoutAPortOnlyTheNetworkItselfDecides) {
  InitCell cell(Listening());
  uint16_t port = cell.Attestation().listener_port;
  ASSERT_TRUE(cell.Start(Connect(static_cast<uint16_t>(port - 1), 0)));
  EXPECT_THAT(cell.Finish().err, HasSubstr("Connection refused"));
}

TEST(ConfineTest, AServerOfTheTasksOwnMayBind) {
  InitCell cell(Listening());
  uint16_t port = cell.Attestation().listener_port;
  cell::Job job = Shell("");
  job.argv = {"python3", "-c",
              "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
              "print('bound')"};
  job.loopback_port = port;
  ASSERT_TRUE(cell.Start(job));
  EXPECT_EQ(cell.Finish().out, "bound\n");
}

// An abstract unix socket of this process: outside of every cell.
class AbstractSocket {
 public:
  explicit AbstractSocket(int type) : socket_(sys::MakeSocket(AF_UNIX, type).value()) {
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path + 1, name_.size());
    auto size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + name_.size());
    const void* generic = &address;
    EXPECT_EQ(::bind(socket_.get(), static_cast<const struct sockaddr*>(generic), size), 0);
    EXPECT_TRUE(type != SOCK_STREAM || ::listen(socket_.get(), 1) == 0);
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_ = Text("taskcell-confine-", ::getpid());
  UniqueFd socket_;
};

// Says what a job in a cell of that kind gets from connecting to the name, first of this process,
// then of its own.
std::string ConnectAbstract(const InitCell::Setup& setup, int type) {
  AbstractSocket outside(type);
  InitCell cell(setup);
  cell::Job job = Shell("");
  job.argv = {"python3", "-c",
              Text("import errno, socket\n"
                   "def reach(name):\n"
                   "  try:\n"
                   "    socket.socket(socket.AF_UNIX, ",
                   type,
                   ").connect(name)\n"
                   "    return 'connected'\n"
                   "  except OSError as e: return errno.errorcode[e.errno]\n"
                   "own = socket.socket(socket.AF_UNIX, ",
                   type,
                   ")\n"
                   "own.bind(b'\\0own')\n",
                   type == SOCK_STREAM ? "own.listen()\n" : "", "print(reach(b'\\0", outside.name(),
                   "'), reach(b'\\0own'))")};
  InitCell::Output output = cell.Run(job);
  EXPECT_EQ(output.err, "");
  return output.out;
}

class AbstractSocketTest : public ::testing::TestWithParam<int> {};

TEST_P(AbstractSocketTest, TheNetworkNamespaceKeepsTheHostsOut) {
  EXPECT_EQ(ConnectAbstract({}, GetParam()), "ECONNREFUSED connected\n");
}

// In the host's own network namespace nothing but Landlock's scope stands between: without it the
// job connects, with it it does not, and its own sockets go on working.
TEST_P(AbstractSocketTest, InTheHostsNetworkTheScopeKeepsThemOut) {
  InitCell::Setup setup;
  setup.host_network = true;
  setup.missing_calls = {SYS_landlock_create_ruleset};
  setup.missing_err = ENOSYS;
  EXPECT_EQ(ConnectAbstract(setup, GetParam()), "connected connected\n") << "control";
  setup.missing_calls.clear();
  TASKCELL_REQUIRE(sys::LandlockAbi() >= kAbiWithScope, "the kernel's Landlock has no scopes");
  EXPECT_EQ(ConnectAbstract(setup, GetParam()), "EPERM connected\n");
}

INSTANTIATE_TEST_SUITE_P(Types, AbstractSocketTest, ::testing::Values(SOCK_STREAM, SOCK_DGRAM),
                         [](const auto& type) {
                           return std::string(type.param == SOCK_STREAM ? "Stream" : "Datagram");
                         });

// Degraded: kernels and filters of engines that lack a call. Either everything still holds, or the
// cell is refused by name.
InitCell::Setup Without(std::vector<long> calls, int err) {
  InitCell::Setup setup;
  setup.missing_calls = std::move(calls);
  setup.missing_err = err;
  return setup;
}

class DegradedTest : public ::testing::TestWithParam<int> {};

TEST_P(DegradedTest, WithoutLandlockTheRestStillHolds) {
  InitCell cell(Without({SYS_landlock_create_ruleset}, GetParam()));
  cell::InsideAttestation seen = cell.Attestation();
  EXPECT_EQ(seen.landlock_abi, 0);
  EXPECT_FALSE(seen.landlock_applied);
  EXPECT_EQ(seen.witness_seccomp_mode, 2U);
  // Nothing but being process 1 protects init from signals here.
  ASSERT_TRUE(
      cell.Start(Shell("echo ran; touch /x || echo refused; for s in 1 2 9 15 19 20; do kill -$s "
                       "1; done; sleep 0.1; "
                       "echo end")));
  EXPECT_EQ(cell.Finish().out, "ran\nrefused\nend\n");
}

TEST_P(DegradedTest, WithoutClone3TheJobStillStarts) {
  InitCell cell(Without({SYS_clone3}, GetParam()));
  EXPECT_EQ(cell.Run(Shell("echo ran")).out, "ran\n");
}

TEST_P(DegradedTest, WithoutOpenat2TheJobRuns) {
  InitCell cell(Without({SYS_openat2}, GetParam()));
  EXPECT_EQ(cell.Run(Shell("echo ran")).out, "ran\n");
}

TEST_P(DegradedTest, WithoutSeccompThereIsNoWitnessAndNoCell) {
  InitCell cell(Without({SYS_seccomp}, GetParam()));
  std::optional<cell::FrameReader::Message> message = cell.Next();
  ASSERT_TRUE(message);
  ASSERT_EQ(message->type, cell::FrameType::kRefused);
  EXPECT_THAT(cell::ParseRefusal(message->payload).value().text, HasSubstr("seccomp"));
}

INSTANTIATE_TEST_SUITE_P(Errors, DegradedTest, ::testing::Values(ENOSYS, EPERM));

}  // namespace
}  // namespace taskcell::test
