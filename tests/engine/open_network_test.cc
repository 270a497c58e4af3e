// egress = "open" from end to end: `taskcell run` on an engine with a bridge that leads nowhere.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/engine/small_root_fixture.h"
#include "tests/support/on_terminal.h"

namespace taskcell::test {
namespace {

class OpenNetworkTest : public SmallRootFixture {
 protected:
  static constexpr uint16_t kHostPort = 8443;

  void SetUp() override {
    TaskFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(MakeSmallRoot());
    ASSERT_NO_FATAL_FAILURE(MakeSmallRootImage());
    ASSERT_NO_FATAL_FAILURE(Listen());
  }

  // At the host's own address on the bridge.
  void Listen() {
    const Outcome shown = test::Run({"ip", "-4", "-o", "address", "show", "dev", "docker0"});
    const std::vector<std::string_view> words = Words(shown.out);
    ASSERT_GT(words.size(), 3U) << shown.out << shown.err;
    bridge_ = words[3].substr(0, words[3].find('/'));
    host_ = sys::MakeSocket(AF_INET, SOCK_STREAM).value();
    struct sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(kHostPort);
    address.sin_addr.s_addr = ::inet_addr(bridge_.c_str());
    const void* generic = &address;
    ASSERT_EQ(::bind(host_.get(), static_cast<const struct sockaddr*>(generic), sizeof address), 0);
    ASSERT_EQ(::listen(host_.get(), 1), 0);
  }
  // Whether somebody has connected to it.
  bool WasReached() const { return sys::Poll(host_.get(), POLLIN, 0).value() != 0; }

  // It runs beside an engine in a network whose bridge leads nowhere (fixture.sh with-bridge).
  bool needs_own_network() const override { return false; }

  void Configure(std::string_view egress) const {
    std::string config = ReadText(At("home/config.toml"));
    const std::string_view table = "[taskcell]\n";
    EXPECT_TRUE(config.starts_with(table));
    Put("config.toml", Text(table, "egress = \"", egress, "\"\n",
                            std::string_view(config).substr(config.find("engine"))));
  }
  // A command that connects to the host.
  std::string Connect() const {
    return Text("bash -c 'exec 3<>/dev/tcp/", bridge_, "/", kHostPort, "' 2>&1 && echo connected");
  }

  // Runs a task that reads which interfaces there are and what its environment is, and connects.
  Json RunTask(std::string_view egress) {
    Configure(egress);
    gateway::ProviderProcess provider =
        MakeProvider({{"steps",
                       {{{"do", "read"}, {"path", "/proc/self/net/dev"}},
                        {{"do", "read"}, {"path", "/proc/self/environ"}},
                        {{"do", "shell"}, {"command", Connect()}}}},
                      {"reply", "{0} and {1} and {2}"}});
    EXPECT_TRUE(provider.IsUp());
    GiveHomeToUser();
    Outcome run = RunClient(provider.Url("/v1"), {"--json"});
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(run.out.find(kKey), std::string::npos) << "the credential was seen";
    return Json::parse(run.out, nullptr, false);
  }
  std::string Events() const { return ReadText(At("home/security_audit.jsonl")); }

  std::string bridge_;
  UniqueFd host_;
};

TEST_F(OpenNetworkTest, ATaskHasTheBridgeAndTheCredentialStaysOutside) {
  const Json closed = RunTask("provider");
  ASSERT_TRUE(closed.is_object() && closed["reply"].is_string());
  EXPECT_NE(closed["reply"].get<std::string>().find("lo:"), std::string::npos) << closed;
  EXPECT_EQ(closed["reply"].get<std::string>().find("eth0"), std::string::npos) << "control";
  EXPECT_EQ(closed["reply"].get<std::string>().find("connected"), std::string::npos) << "control";
  EXPECT_FALSE(WasReached()) << "control";
  EXPECT_EQ(Events().find("task_sandbox_egress_open"), std::string::npos) << "control";

  const Json open = RunTask("open");
  ASSERT_TRUE(open.is_object() && open["reply"].is_string());
  EXPECT_NE(open["reply"].get<std::string>().find("eth0"), std::string::npos) << open;
  EXPECT_NE(open["reply"].get<std::string>().find("HOME="), std::string::npos) << open;
  EXPECT_NE(open["reply"].get<std::string>().find("connected"), std::string::npos) << open;
  EXPECT_TRUE(WasReached());
  EXPECT_NE(Events().find("\"event_type\":\"task_sandbox_egress_open\""), std::string::npos);
  const Json& receipt = open["receipt"];
  EXPECT_EQ(receipt["cell"]["network"], "open");
  EXPECT_EQ(receipt["verified"], true);
  EXPECT_EQ(receipt["egress"]["credential_inside"], false);
  const Json& interfaces = receipt["seen"]["interfaces"];
  EXPECT_NE(std::find(interfaces.begin(), interfaces.end(), "eth0"), interfaces.end()) << receipt;
}

TEST_F(OpenNetworkTest, AShellHasTheBridgeToo) {
  for (const bool is_open : {false, true}) {
    Configure(is_open ? "open" : "provider");
    GiveHomeToUser();
    OnTerminal terminal(ShellCommand(), BecomeUser());
    (void)terminal.ScreenUntil("the cell is verified");
    terminal.Type(Connect() + "; echo tried-$((40+2))-\n");
    const std::string screen = terminal.ScreenUntil("tried-42-");
    EXPECT_NE(screen.find("tried-42-"), std::string::npos) << screen;
    EXPECT_EQ(WasReached(), is_open) << screen;
    terminal.Type("exit 0\n");
    EXPECT_EQ(terminal.Wait(), 0);
  }
}

}  // namespace
}  // namespace taskcell::test
