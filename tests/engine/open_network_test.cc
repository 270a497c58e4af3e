// egress = "open" from end to end: `taskcell run` on an engine with a bridge that leads nowhere.
#include <gtest/gtest.h>

#include <algorithm>

#include "launcher/base/text.h"
#include "tests/engine/task_fixture.h"

namespace taskcell::test {
namespace {

class OpenNetworkTest : public TaskFixture {
 protected:
  // It runs beside an engine in a network whose bridge leads nowhere (fixture.sh with-bridge).
  bool needs_own_network() const override { return false; }

  // Runs a task that reads which interfaces there are and what its environment is.
  Json RunTask(std::string_view egress) {
    std::string config = ReadText(At("home/config.toml"));
    const std::string_view table = "[taskcell]\n";
    EXPECT_TRUE(config.starts_with(table));
    Put("config.toml", Text(table, "egress = \"", egress, "\"\n",
                            std::string_view(config).substr(config.find("engine"))));
    gateway::ProviderProcess provider =
        MakeProvider({{"steps",
                       {{{"do", "read"}, {"path", "/proc/self/net/dev"}},
                        {{"do", "read"}, {"path", "/proc/self/environ"}}}},
                      {"reply", "{0} and {last}"}});
    EXPECT_TRUE(provider.IsUp());
    GiveHomeToUser();
    Outcome run = RunClient(provider.Url("/v1"), {"--json"});
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(run.out.find(kKey), std::string::npos) << "the credential was seen";
    return Json::parse(run.out, nullptr, false);
  }
  std::string Events() const { return ReadText(At("home/security_audit.jsonl")); }
};

TEST_F(OpenNetworkTest, ATaskHasTheBridgeAndTheCredentialStaysOutside) {
  const Json closed = RunTask("provider");
  ASSERT_TRUE(closed.is_object() && closed["reply"].is_string());
  EXPECT_NE(closed["reply"].get<std::string>().find("lo:"), std::string::npos) << closed;
  EXPECT_EQ(closed["reply"].get<std::string>().find("eth0"), std::string::npos) << "control";
  EXPECT_EQ(Events().find("task_sandbox_egress_open"), std::string::npos) << "control";

  const Json open = RunTask("open");
  ASSERT_TRUE(open.is_object() && open["reply"].is_string());
  EXPECT_NE(open["reply"].get<std::string>().find("eth0"), std::string::npos) << open;
  EXPECT_NE(open["reply"].get<std::string>().find("HOME="), std::string::npos) << open;
  EXPECT_NE(Events().find("\"event_type\":\"task_sandbox_egress_open\""), std::string::npos);
  const Json& receipt = open["receipt"];
  EXPECT_EQ(receipt["cell"]["network"], "open");
  EXPECT_EQ(receipt["verified"], true);
  EXPECT_EQ(receipt["egress"]["credential_inside"], false);
  const Json& interfaces = receipt["seen"]["interfaces"];
  EXPECT_NE(std::find(interfaces.begin(), interfaces.end(), "eth0"), interfaces.end()) << receipt;
}

}  // namespace
}  // namespace taskcell::test
