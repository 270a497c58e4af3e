// taskcell-hostile as a task's tool call: nothing it tries gets through, on every engine, and the
// same program outside a cell does get through. Compiled once for each engine.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "launcher/base/text.h"
#include "tests/engine/real_task_fixture.h"

namespace taskcell {
namespace {

using Json = nlohmann::json;

// What became of each attempt, by its name.
std::map<std::string, std::string> OutcomesIn(const std::string& lines) {
  std::map<std::string, std::string> outcomes;
  for (std::string_view line : Split(lines, '\n')) {
    if (line.empty() || line[0] != '{') continue;
    Json attempt = Json::parse(line);
    outcomes[attempt["attempt"]] = attempt["outcome"];
  }
  return outcomes;
}

class HostileTaskTest : public test::RealTaskFixture {};

TEST_F(HostileTaskTest, NothingItTriesGetsOutOfTheCell) {
  MakeHome({"openai_compat", "openai/test-model", "openai", "sk-"});
  const std::string key_file = Put(".keyfile", "32 bytes that nobody else may see");
  const std::string program = path() + "/home/agents/a1/SKILLS/hostile";
  std::filesystem::create_directories(path() + "/home/agents/a1/SKILLS");
  std::filesystem::copy_file(test::Program("taskcell-hostile"), program);
  // The provider itself is what listens on the host's loopback; its port is known only once it is
  // there, so the command reads it from the prompt's place in the agent directory.
  const std::string scenario = path() + "/scenario.json";
  std::ofstream(scenario) << Json{
      {"steps",
       {{{"do", "shell"},
         {"command", Text("cp /agent/SKILLS/hostile h && chmod 755 h && ./h --key-file ", key_file,
                          " --host-port $(cat /agent/SKILLS/port)")}}}},
      {"reply", "{last}"}}.dump();
  gateway::ProviderProcess provider(key(), scenario);
  ASSERT_TRUE(provider.IsUp());
  std::string url = provider.Url();
  (void)Put("agents/a1/SKILLS/port", url.substr(url.rfind(':') + 1));

  test::Outcome run = RunTask(provider);
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json answer = Json::parse(run.out);
  std::map<std::string, std::string> outcomes = OutcomesIn(answer["reply"]);
  EXPECT_EQ(outcomes.size(), 25U) << answer["reply"];
  for (const auto& [attempt, outcome] : outcomes) {
    bool takes_resources = attempt == "fork bomb" || attempt == "memory hog";
    EXPECT_EQ(outcome, takes_resources ? "bounded" : "blocked") << attempt << answer["reply"];
  }
}

TEST_F(HostileTaskTest, OutsideACellTheSameProgramGetsThrough) {
  test::Outcome run =
      test::Run({"unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc",
                 test::Program("taskcell-hostile"), "--processes", "32", "--memory-mib", "64"});
  EXPECT_EQ(run.status, 1) << run.err;
  std::map<std::string, std::string> outcomes = OutcomesIn(run.out);
  for (const char* attempt :
       {"read /etc/shadow", "raw socket", "packet socket", "mount", "user namespace",
        "ptrace of PID 1", "memory of PID 1", "descriptors of PID 1", "uid 0", "bpf", "write /usr",
        "write the kernel's core_pattern", "fork bomb", "memory hog"}) {
    EXPECT_EQ(outcomes[attempt], "got through") << attempt << '\n' << run.out;
  }
}

TEST_F(HostileTaskTest, WithMoreThanTheLoopbackItTriesNothing) {
  test::Outcome links = test::Run({"ls", "/sys/class/net"});
  TASKCELL_REQUIRE(Trim(links.out) != "lo", "needs a host with a network interface");
  test::Outcome run = test::Run({test::Program("taskcell-hostile")});
  EXPECT_EQ(run.status, 3);
  EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace taskcell
