#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "tests/engine/ways_out_test.h"
#include "tests/support/egress_world.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

// In a network where every one of those addresses is there.
TEST_F(WaysOutTest, NeitherWhereEveryAddressIsThereAndOutsideTheSameScriptGetsThrough) {
  bool is_made = EgressWorld::Run(At("world"), [&](EgressWorld& world) {
    ASSERT_EQ(test::Run({"ip", "address", "add", "172.17.0.1/32", "dev", "lo"}).status, 0);
    gateway::ProviderProcess provider = MakeProvider(Scenario());
    ASSERT_TRUE(provider.IsUp());
    Json answer;
    Expect(TryInCell(provider, &answer));
    for (const char* address : {EgressWorld::kPublic, "169.254.169.254", "10.1.2.3", "172.17.0.1"})
      EXPECT_EQ(world.ConnectionsTo(address), 0U) << address;

    const std::string url = provider.Url();
    RunOptions outside;
    outside.directory = path_;
    outside.environment = {"WAYS_MARK=sk-the-one", Text("SOMETHING=", kKey)};
    std::ofstream(At("left-by-an-earlier-task")) << "";
    const std::string port = url.substr(url.rfind(':') + 1);
    fs::copy_file(WAYS_OUT_PATH, At("script"));
    Outcomes control =
        Parse(test::Run({"bash", At("script"), port, std::string(kKey)}, outside).out);
    for (const char* name :
         {"address",         "other-port",     "name",          "name-server", "datagram",
          "metadata",        "metadata-name",  "private",       "bridge",      "rules",
          "workspace",       "control",        "server-search", "server-mcp",  "server-code",
          "server-computer", "server-unknown", "server-url",    "stored",      "other-model",
          "settings",        "credential"})
      EXPECT_EQ(control[name], kThrough) << name;
    EXPECT_EQ(world.ConnectionsTo("169.254.169.254"), 2U);
    EXPECT_EQ(world.ConnectionsTo("172.17.0.1"), 1U);
  });
  ASSERT_TRUE(is_made);
}

}  // namespace
}  // namespace taskcell::test
