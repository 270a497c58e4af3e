// The ways by which others' sandboxes were left, tried from inside a real cell with nothing but
// bash; and the same script outside, where what it tries does work. Runs on each engine.
#include "tests/engine/ways_out_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "launcher/base/text.h"
#include "tests/integration/gateway/egress/proxy_process.h"
#include "tests/support/egress_world.h"

namespace taskcell::test {

namespace fs = std::filesystem;

void WaysOutTest::SetUp() {
  TaskFixture::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  fs::create_directory(At("world"));
  if (!image_.empty()) {  // in the place of the fixture's empty one
    ASSERT_NO_FATAL_FAILURE(MakeSmallRoot());
    ASSERT_NO_FATAL_FAILURE(MakeSmallRootImage());
  }
  Put("agents/a1/SKILLS/ways_out", ReadText(WAYS_OUT_PATH));
}

WaysOutTest::Outcomes WaysOutTest::Parse(const std::string& text) {
  Outcomes outcomes;
  for (std::string_view line : Split(text, '\n')) {
    std::vector<std::string_view> parts = Split(line, '\t');
    if (parts.size() == 3) outcomes[std::string(parts[0])] = parts[2];
  }
  return outcomes;
}

WaysOutTest::Outcomes WaysOutTest::TryInCell(const gateway::ProviderProcess& provider,
                                             Json* answer) {
  GiveHomeToUser();
  Outcome run = RunClient(provider.Url("/v1"), {"--json"});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  *answer = Json::parse(run.out, nullptr, false);
  if (!answer->is_object() || !(*answer)["reply"].is_string()) return {};
  return Parse((*answer)["reply"]);
}

WaysOutTest::Json WaysOutTest::Scenario() {
  return {
      {"steps",
       {{{"do", "shell"}, {"command", "WAYS_MARK=sk-the-one bash /agent/SKILLS/ways_out 2>&1"}}}},
      {"reply", "{last}"}};
}

void WaysOutTest::Expect(const Outcomes& outcomes) {
  const std::map<std::string, std::vector<std::string>> contained = {
      {"address", {"no route", "not permitted"}},
      {"other-port", {"no route", "not permitted"}},
      {"name", {"no such name"}},
      {"name-server", {"no route"}},
      {"datagram", {"no route"}},
      {"metadata", {"no route", "not permitted"}},
      {"metadata-name", {"no such name"}},
      {"private", {"no route", "not permitted"}},
      {"bridge", {"no route", "not permitted"}},
      {"metadata-v6", {"no route", "not permitted", "Cannot assign requested address"}},
      {"addresses-v6", {"none"}},
      {"abstract-sockets", {"none"}},
      {"engine-socket", {"none"}},
      {"rules", {"none"}},
      {"settings", {"none"}},
      {"workspace", {"none"}},
      {"control", {"through"}},
      {"placeholder", {"through"}},
      {"server-search", {"refused: egress_server_tool"}},
      {"server-mcp", {"refused: egress_server_tool"}},
      {"server-code", {"refused: egress_server_tool"}},
      {"server-computer", {"refused: egress_server_tool"}},
      {"server-unknown", {"refused: egress_server_tool"}},
      {"server-url", {"refused: egress_url"}},
      {"stored", {"refused: egress_field"}},
      {"other-model", {"refused: egress_model"}},
      {"upgrade", {"refused: egress_upgrade"}},
      {"absolute", {"refused: egress_http"}},
      {"host-header", {"refused: egress_host"}},
      {"keep-alive", {"refused: egress_host"}},
      {"tunnel", {"refused: egress_http"}},
      {"smuggle", {"refused: egress_http"}},
      {"files", {"refused: egress_path"}},
      {"credential", {"none"}},
      {"process-1", {"not permitted"}},
  };
  for (const auto& [name, allowed] : contained) {
    auto found = outcomes.find(name);
    ASSERT_NE(found, outcomes.end()) << name;
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), found->second), allowed.end())
        << name << ": " << found->second;
  }
  EXPECT_EQ(outcomes.size(), contained.size());
}

namespace {

TEST_F(WaysOutTest, FromInsideACellNoneOfThemLeadsOut) {
  gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  Json answer;
  Expect(TryInCell(provider, &answer));
  // What the broker refused never came to the provider, and stands in the receipt.
  bool is_placeholder_there = false;
  for (const gateway::LoggedRequest& request : provider.Log()) {
    is_placeholder_there |= request.body.find("sk-taskcell-placeholder") != std::string::npos;
    EXPECT_EQ(request.body.find(kKey), std::string::npos);
    EXPECT_EQ(request.path, "/v1/chat/completions");
    EXPECT_EQ(request.body.find("evil.example"), std::string::npos);
    EXPECT_EQ(request.body.find("web_search"), std::string::npos);
    EXPECT_TRUE(request.authorized);
  }
  EXPECT_TRUE(is_placeholder_there);
  EXPECT_GE(answer["receipt"]["egress"]["record"]["totals"]["refused"], 14) << answer;
  // Another task finds nothing of this one.
  Json again;
  EXPECT_EQ(TryInCell(provider, &again)["workspace"], "none");
}

// Writes the first bytes of a TLS client for each server name.
constexpr const char* kHellos = R"(
import ssl, sys
for name in sys.argv[2:]:
    context = ssl.create_default_context()
    context.check_hostname = False
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=None if name == "none" else name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        open(sys.argv[1] + "/" + name, "wb").write(out.read())
)";

// Places that are there, in a network of this test's own; outside a proxy that stops nobody leads
// to each.
TEST_F(WaysOutTest, ByConnectOnlyThePlacesOfTheListAreReachedAndOutsideAllAre) {
  Agent(60000,
        "[taskcell]\nallow_hosts = [\"files.example.org:443\", \"meta.example.org:443\", "
        "\"private.example.org:443\", \"loop.example.org:443\", \"mixed.example.org:443\"]\n");
  Put("agents/a1/SKILLS/connect_ways", ReadText(CONNECT_WAYS_PATH));
  Put("agents/a1/SKILLS/nested", "CONNECT other.example.org:443 HTTP/1.1\r\n\r\n");
  const std::string skills = AgentFile("SKILLS");
  ASSERT_EQ(test::Run({"python3", "-c", kHellos, skills, "files.example.org", "other.example.org",
                       "meta.example.org", "private.example.org", "loop.example.org",
                       "mixed.example.org", "none"})
                .status,
            0);
  // What each comes to in a cell, and through the other proxy; "": not asked there.
  const std::map<std::string, std::pair<std::string, std::string>> ways = {
      {"control", {"through", "through"}},
      {"other-host", {"refused: egress_host", "through"}},
      {"other-port", {"refused: egress_host", "through"}},
      {"sub-domain", {"refused: egress_host", ""}},
      {"server-name", {"alert", "through"}},
      {"no-server-name", {"alert", "through"}},
      {"nested", {"alert", ""}},
      {"metadata-name", {"alert", "through"}},
      {"private-name", {"alert", "through"}},
      {"loopback-name", {"alert", "through"}},
      {"mixed-name", {"alert", "through"}},
      {"address", {"refused: egress_connect", "through"}},
      {"metadata-address", {"refused: egress_connect", "through"}},
      {"decimal", {"refused: egress_connect", "through"}},
      {"octal", {"refused: egress_connect", "through"}},
      {"mapped", {"refused: egress_connect", "through"}},
      {"trailing-dot", {"refused: egress_connect", ""}},
      {"upper-case", {"refused: egress_connect", "through"}},
      {"nul", {"refused: egress_connect", ""}},
      {"other-host-beside", {"refused: egress_connect", "through"}},
      {"plain", {"refused: egress_plain_http", ""}},
      {"method", {"refused: egress_connect", ""}}};
  bool is_made = EgressWorld::Run(At("world"), [&](EgressWorld& world) {
    gateway::ProviderProcess provider = MakeProvider(
        {{"steps",
          {{{"do", "shell"}, {"command", "bash /agent/SKILLS/connect_ways /agent/SKILLS 2>&1"}}}},
         {"reply", "{last}"}});
    ASSERT_TRUE(provider.IsUp());
    Json answer;
    Outcomes in_cell = TryInCell(provider, &answer);
    EXPECT_EQ(in_cell.size(), ways.size()) << answer;
    for (const auto& [name, outcomes] : ways) EXPECT_EQ(in_cell[name], outcomes.first) << name;
    EXPECT_EQ(world.ConnectionsTo(EgressWorld::kPublic), 1U) << "the control's";
    for (const char* address : {"169.254.169.254", "10.1.2.3", "127.0.0.1"})
      EXPECT_EQ(world.ConnectionsTo(address), 0U) << address;

    const gateway::Proxy proxy(At("world"), 0, 0);
    RunOptions outside;
    outside.environment = {"HTTPS_PROXY=" + proxy.Url()};
    outside.timeout_ms = 90000;
    Outcomes control = Parse(test::Run({"bash", CONNECT_WAYS_PATH, skills}, outside).out);
    for (const auto& [name, outcomes] : ways) {
      if (outcomes.second.empty()) continue;
      EXPECT_EQ(control[name], outcomes.second) << name;
    }
    for (const char* address : {"169.254.169.254", "10.1.2.3", "127.0.0.1"})
      EXPECT_GT(world.ConnectionsTo(address), 0U) << address;
  });
  ASSERT_TRUE(is_made);
}

// A second task has its own list, not the one before it (nor that of its neighbour's pool).
TEST_F(WaysOutTest, WhatOneTaskMayReachTheNextMayNotOnceTheListIsShorter) {
  gateway::ProviderProcess provider =
      MakeProvider({{"steps", {{{"do", "shell"}, {"command", "echo proxy=${HTTPS_PROXY:-none}"}}}},
                    {"reply", "{last}"}});
  ASSERT_TRUE(provider.IsUp());
  Json answer;
  Agent(30000, "[taskcell]\nallow_hosts = [\"files.example.org:443\"]\n");
  (void)TryInCell(provider, &answer);
  EXPECT_EQ(answer["receipt"]["egress"]["allow_hosts"], Json({"files.example.org:443"})) << answer;
  EXPECT_EQ(answer["reply"].get<std::string>().find("proxy=none"), std::string::npos);
  Agent(30000);
  (void)TryInCell(provider, &answer);
  EXPECT_EQ(answer["receipt"]["egress"]["allow_hosts"], Json::array()) << answer;
  EXPECT_NE(answer["reply"].get<std::string>().find("proxy=none"), std::string::npos);
}

}  // namespace
}  // namespace taskcell::test
