// allow_hosts and antigravity from end to end: `taskcell run` with a real cell, a TLS server on
// addresses of the test's own, and programs in the cell that go through the listener for tunnels or
// try everything else.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "launcher/base/text.h"
#include "launcher/sys/landlock.h"
#include "tests/engine/task_fixture.h"
#include "tests/support/egress_world.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAllowed =
    "[taskcell]\nallow_hosts = [\"files.example.org:443\", \"flip.example.org:443\", "
    "\"meta.example.org:443\", \"private.example.org:443\", \"loop.example.org:443\", "
    "\"nowhere.example.org:443\"]\n";

// What is to come of one attempt of tests/support/tunnel_client.py in the cell.
struct Attempt {
  std::string word;
  std::string outcome;
};

class TunnelTaskTest : public TaskFixture {
 protected:
  void SetUp() override {
    TaskFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    world_ = At("world");
    fs::create_directory(world_);
  }

  static std::string Script(const char* path) { return ReadText(path); }

  // Runs the attempts as a tool call in the cell: their outcomes by word, and the answer.
  std::map<std::string, std::string> TryInCell(EgressWorld& world,
                                               const std::vector<std::string>& words,
                                               Json* answer) {
    Put("agents/a1/SKILLS/ca.pem", world.Certificate());
    Put("agents/a1/SKILLS/client.py", Script(TUNNEL_CLIENT_PATH));
    std::string command = "python3 /agent/SKILLS/client.py /agent/SKILLS/ca.pem";
    for (const std::string& word : words) command += Text(" '", word, "'");
    command += " 2>&1";
    gateway::ProviderProcess provider =
        MakeProvider({{"steps", {{{"do", "shell"}, {"command", command}}}}, {"reply", "{last}"}});
    EXPECT_TRUE(provider.IsUp());
    GiveHomeToUser();
    Outcome run = RunClient(provider.Url("/v1"), {"--json"});
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    *answer = Json::parse(run.out, nullptr, false);
    std::map<std::string, std::string> outcomes;
    if (!answer->is_object() || !(*answer)["reply"].is_string()) return outcomes;
    const std::string reply = (*answer)["reply"];
    for (std::string_view line : Split(reply, '\n')) {
      std::size_t equals = line.rfind('=');
      if (equals == std::string_view::npos) continue;
      outcomes[std::string(line.substr(0, equals))] = line.substr(equals + 1);
    }
    EXPECT_EQ(outcomes.size(), words.size()) << reply;
    return outcomes;
  }

  void ExpectInCell(EgressWorld& world, const std::vector<Attempt>& attempts, Json* answer) {
    std::vector<std::string> words;
    for (const Attempt& attempt : attempts) words.push_back(attempt.word);
    auto outcomes = TryInCell(world, words, answer);
    for (const Attempt& attempt : attempts)
      EXPECT_EQ(outcomes[attempt.word], attempt.outcome) << attempt.word;
  }

  std::string world_;
};

TEST_F(TunnelTaskTest, AProgramReachesTheHostsOfTheListAndNoOtherPlace) {
  Agent(60000, kAllowed);
  bool is_made = EgressWorld::Run(world_, [&](EgressWorld& world) {
    Json answer;
    // Where the kernel's Landlock knows ports it refuses first; else there is no route.
    const std::string denied = sys::LandlockAbi() >= 4 ? "EACCES" : "ENETUNREACH";
    ExpectInCell(
        world,
        {{"get:files.example.org/hello", "the file"},
         {"get:files.example.org/big", "8388608"},
         {"tls:files.example.org:443:FILES.example.org", "hello"},
         // Another place, another port, a redirect, plain HTTP.
         {"get:other.example.org/hello", "URLError Tunnel connection failed: 403 Forbidden"},
         {"get:files.example.org/redirect", "URLError Tunnel connection failed: 403 Forbidden"},
         {"tls:files.example.org:22:files.example.org", "egress_host"},
         {"tls:example.org:443:example.org", "egress_host"},
         {"tls:a.files.example.org:443:files.example.org", "egress_host"},
         {"say:GET http://files.example.org/ HTTP/1.1\\r\\nHost: files.example.org\\r\\n\\r\\n",
          "egress_plain_http"},
         {"say:GET / HTTP/1.1\\r\\nHost: files.example.org\\r\\n\\r\\n", "egress_connect"},
         // Odd spellings, CONNECT in CONNECT, a second request on the same connection.
         {"say:CONNECT files.example.org.:443 HTTP/1.1\\r\\n\\r\\n", "egress_connect"},
         {"say:CONNECT FILES.example.org:443 HTTP/1.1\\r\\n\\r\\n", "egress_connect"},
         {"say:CONNECT files.example.org\\0.evil.example:443 HTTP/1.1\\r\\n\\r\\n",
          "egress_connect"},
         {"say:CONNECT 93.184.215.14:443 HTTP/1.1\\r\\n\\r\\n", "egress_connect"},
         {"say:CONNECT [::ffff:169.254.169.254]:443 HTTP/1.1\\r\\n\\r\\n", "egress_connect"},
         {"say:CONNECT 2852039166:443 HTTP/1.1\\r\\n\\r\\n", "egress_connect"},
         {"say:CONNECT files.example.org:443 HTTP/1.1\\r\\nHost: other.example.org\\r\\n\\r\\n",
          "egress_connect"},
         {"nested:files.example.org:443", "alert"},
         {"again:files.example.org:443", "egress_host, 1 answer"},
         // Another server name than the host, and none.
         {"tls:files.example.org:443:other.example.org", "alert"},
         {"tls:files.example.org:443:-", "alert"},
         // Names of the list that lead to addresses that are not public.
         {"tls:meta.example.org:443:meta.example.org", "alert"},
         {"tls:private.example.org:443:private.example.org", "alert"},
         {"tls:loop.example.org:443:loop.example.org", "alert"},
         {"tls:nowhere.example.org:443:nowhere.example.org", "alert"},
         // Without the listener: nothing is routed, and there is no resolver.
         {"connect:93.184.215.14:443", denied},
         {"connect:169.254.169.254:443", denied},
         {"udp:93.184.215.14:53", "ENETUNREACH"},
         {"name:files.example.org", "no name"}},
        &answer);
    // Three tunnels stood; of all the others not one connection was made.
    EXPECT_EQ(world.ConnectionsTo(EgressWorld::kPublic), 4U);
    for (const char* address : {"169.254.169.254", "10.1.2.3", "127.0.0.1"})
      EXPECT_EQ(world.ConnectionsTo(address), 0U) << address;
    for (const Json& line : world.Log())
      EXPECT_NE(line.value("name", ""), "other.example.org") << line;

    const Json& egress = answer["receipt"]["egress"];
    EXPECT_EQ(egress["credential_inside"], false);
    EXPECT_EQ(egress["allow_hosts"].size(), 6U);
    std::map<std::string, int> codes;
    for (const Json& tunnel : egress["record"]["tunnels"])
      ++codes[Text(tunnel["host"].get<std::string>(), " ", tunnel["code"].get<std::string>())];
    EXPECT_EQ(codes["files.example.org "], 4);
    EXPECT_EQ(codes["files.example.org egress_sni"], 1);
    EXPECT_EQ(codes["files.example.org egress_tls"], 2);
    EXPECT_EQ(codes["meta.example.org egress_address"], 1);
    EXPECT_EQ(codes["private.example.org egress_address"], 1);
    EXPECT_EQ(codes["loop.example.org egress_address"], 1);
    EXPECT_EQ(codes["nowhere.example.org egress_unreachable"], 1);
    EXPECT_EQ(codes["other.example.org egress_host"], 3);
  });
  ASSERT_TRUE(is_made);
}

// The control: from outside a cell each of those addresses answers, by name and by address.
TEST_F(TunnelTaskTest, OutsideACellEveryAddressOfThatWorldAnswers) {
  bool is_made = EgressWorld::Run(world_, [&](EgressWorld& world) {
    Outcome run =
        test::Run({"python3", TUNNEL_CLIENT_PATH, world_ + "/cert.pem", "connect:93.184.215.14:443",
                   "connect:93.184.215.14:22", "connect:169.254.169.254:443",
                   "connect:10.1.2.3:443", "udp:93.184.215.14:53", "name:meta.example.org"});
    EXPECT_EQ(run.out,
              "connect:93.184.215.14:443=connected\nconnect:93.184.215.14:22=connected\n"
              "connect:169.254.169.254:443=connected\nconnect:10.1.2.3:443=connected\n"
              "udp:93.184.215.14:53=sent\nname:meta.example.org=169.254.169.254\n")
        << run.err;
    EXPECT_EQ(world.ConnectionsTo("169.254.169.254"), 1U);
  });
  ASSERT_TRUE(is_made);
}

// Rebinding: the server gives its own name another address between two connections.
TEST_F(TunnelTaskTest, ANameThatChangesItsMindIsRefusedAtTheNextConnection) {
  Agent(60000, kAllowed);
  bool is_made = EgressWorld::Run(world_, [&](EgressWorld& world) {
    Json answer;
    ExpectInCell(world,
                 {{"get:flip.example.org/hello", "the file"},
                  {"get:flip.example.org/move/flip.example.org/10.1.2.3", "the file"},
                  {"tls:flip.example.org:443:flip.example.org", "alert"}},
                 &answer);
    EXPECT_EQ(world.ConnectionsTo("10.1.2.3"), 0U);
    EXPECT_EQ(answer["receipt"]["egress"]["record"]["tunnels"][2]["code"], "egress_address");
  });
  ASSERT_TRUE(is_made);
}

TEST_F(TunnelTaskTest, AnEmptyListMakesNoListenerAndNoProxy) {
  Agent(60000, "[taskcell]\nallow_hosts = []\n");
  bool is_made = EgressWorld::Run(world_, [&](EgressWorld& world) {
    gateway::ProviderProcess provider = MakeProvider(
        {{"steps",
          {{{"do", "shell"},
            {"command", "env | grep -ci proxy; grep -c ' 0A ' /proc/net/tcp; echo end"}}}},
         {"reply", "{last}"}});
    ASSERT_TRUE(provider.IsUp());
    GiveHomeToUser();
    Outcome run = RunClient(provider.Url("/v1"), {"--json"});
    ASSERT_EQ(run.status, 0) << run.out << run.err;
    const Json answer = Json::parse(run.out);
    // The one that listens is the broker's.
    EXPECT_NE(answer["reply"].get<std::string>().find("0\n1\nend"), std::string::npos)
        << answer["reply"];
    EXPECT_EQ(answer["receipt"]["egress"]["allow_hosts"], Json::array());
    EXPECT_EQ(world.Log().size(), 0U);
  });
  ASSERT_TRUE(is_made);
}

class AntigravityTaskTest : public TunnelTaskTest {
 protected:
  static constexpr std::string_view kGeminiKey = "AIza-the-one-gemini-key-0123456789";

  void PutAgent() const {
    Put("agents/a1/agent.toml",
        "[agent]\nname = \"a1\"\n[runtime]\nprovider = \"antigravity\"\n[model]\npreferred = "
        "\"gemini-3-pro\"\n[container]\nsandbox_enabled = true\nnetwork_access = true\n"
        "timeout_ms = 60000\n");
  }

  // The program is where the guide has it; /usr of this world alone holds it.
  bool InstallProgram() const {
    for (const char* name : {"upper", "work"}) fs::create_directory(Text(world_, "/", name));
    const std::string options = Text("lowerdir=/usr,upperdir=", world_, "/upper,workdir=", world_,
                                     "/work,index=off,xino=off");
    if (::mount("overlay", "/usr", "overlay", 0, options.c_str()) != 0) return false;
    std::ofstream("/usr/local/bin/agy") << Script(AGY_PATH);
    return ::chmod("/usr/local/bin/agy", 0755) == 0;
  }

  Json RunTask(EgressWorld& world, std::string_view key) {
    PutAgent();
    Put("agents/a1/SKILLS/ca.pem", world.Certificate());
    std::ofstream(world_ + "/key") << kGeminiKey;
    EXPECT_TRUE(InstallProgram());
    GiveHomeToUser();
    RunOptions run;
    run.user = user_;
    run.environment = {Text("GEMINI_API_KEY=", key)};
    run.timeout_ms = 100000;
    Outcome outcome = test::Run(
        {Program("taskcell"), "run", "a1", "Say pong.", "--home", path_ + "/home", "--json"}, run);
    Json answer = Json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(answer.is_object()) << outcome.out << outcome.err;
    return answer;
  }
};

TEST_F(AntigravityTaskTest, ItReachesItsProviderThroughATunnelWithTheKeyInItsOwnHands) {
  bool is_made = EgressWorld::Run(world_, [&](EgressWorld& world) {
    Json answer = RunTask(world, kGeminiKey);
    ASSERT_EQ(answer["code"], "ok") << answer;
    EXPECT_EQ(answer["reply"], "pong");
    const Json& egress = answer["receipt"]["egress"];
    EXPECT_EQ(egress["credential_inside"], true);
    EXPECT_EQ(egress["upstream"], "");
    EXPECT_EQ(egress["allow_hosts"],
              Json({"cloudcode-pa.googleapis.com:443", "generativelanguage.googleapis.com:443"}));
    ASSERT_EQ(egress["record"]["tunnels"].size(), 1U);
    EXPECT_EQ(egress["record"]["tunnels"][0]["host"], "generativelanguage.googleapis.com");
    EXPECT_GT(egress["record"]["tunnels"][0]["bytes_up"], 500);
    EXPECT_EQ(egress["record"]["totals"]["requests"], 1);
    int warnings = 0;
    for (const Json& warning : answer["warnings"])
      if (warning.get<std::string>().find("inside the cell") != std::string::npos) ++warnings;
    EXPECT_EQ(warnings, 1) << answer["warnings"];
    EXPECT_EQ(answer.dump().find(kGeminiKey), std::string::npos);
  });
  ASSERT_TRUE(is_made);
}

TEST_F(AntigravityTaskTest, AKeyTheProviderRejectsIsAuthFailed) {
  bool is_made = EgressWorld::Run(world_, [&](EgressWorld& world) {
    Json answer = RunTask(world, "AIza-another-key");
    EXPECT_EQ(answer["code"], "auth_failed") << answer;
  });
  ASSERT_TRUE(is_made);
}

}  // namespace
}  // namespace taskcell::test
