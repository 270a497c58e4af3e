// taskcell-attacker as a task's tool call: each attempt fails as a cell's own filter and mounts
// make it fail, on every engine. That the payloads get through outside is taskcell-probe attack's
// to show. Runs on each engine.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "launcher/base/text.h"
#include "probe/attack/payload.h"
#include "tests/engine/real_task_fixture.h"

namespace taskcell {
namespace {

using Json = nlohmann::json;

// What is worth trying in any task's cell: nothing that needs more laid out than a file and a port.
constexpr const char* kAttacks =
    "namespaces mounts devices cgroups network kernel host-file shadow write-usr uid-0 trace-init "
    "read-init-memory init-memory-file take-init-descriptors take-from-peer signal-init "
    "core-pattern gate-junk "
    "cve-2024-21626-descriptor fork-bomb memory-bomb";

class HostileTaskTest : public test::RealTaskFixture {};

TEST_F(HostileTaskTest, NothingItTriesGetsOutOfTheCell) {
  MakeHome({"openai_compat", "openai/test-model", "openai", "sk-"});
  const std::string key_file = Put(".keyfile", "32 bytes that nobody else may see");
  const std::string program = path() + "/home/agents/a1/SKILLS/hostile";
  std::filesystem::create_directories(path() + "/home/agents/a1/SKILLS");
  std::filesystem::copy_file(test::Program("taskcell-attacker"), program);
  // The provider itself is what listens on the host's loopback; its port is known only once it is
  // there, so the command reads it from the prompt's place in the agent directory.
  const std::string scenario = path() + "/scenario.json";
  std::ofstream(scenario) << Json{
      {"steps",
       {{{"do", "shell"},
         {"command",
          Text("cp /agent/SKILLS/hostile h && chmod 755 h && ./h secret=", key_file,
               " port=$(cat /agent/SKILLS/port) pids=4096 memory-bytes=17179869184 ", kAttacks)}}}},
      {"reply", "{last}"}}.dump();
  gateway::ProviderProcess provider(key(), scenario);
  ASSERT_TRUE(provider.IsUp());
  std::string url = provider.Url();
  (void)Put("agents/a1/SKILLS/port", url.substr(url.rfind(':') + 1));

  test::Outcome run = RunTask(provider);
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json answer = Json::parse(run.out);
  std::size_t tried = 0;
  const std::string reply = answer["reply"];
  for (std::string_view line : Split(reply, '\n')) {
    if (!line.starts_with('{')) continue;
    Json outcome = Json::parse(line);
    const attack::Payload* payload = attack::FindPayload(outcome["payload"].get<std::string>());
    ASSERT_NE(payload, nullptr) << line;
    EXPECT_TRUE(attack::IsContained(*payload, outcome["result"])) << line;
    ++tried;
  }
  EXPECT_GT(tried, 80U) << reply;
}

}  // namespace
}  // namespace taskcell
