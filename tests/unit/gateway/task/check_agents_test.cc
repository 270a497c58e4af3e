#include "gateway/task/check_agents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/gateway/task/run_task_fixture.h"

namespace taskcell::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kOn[] = "[container]\nsandbox_enabled = true\nnetwork_access = true\n";

class CheckAgentsTest : public RunTaskTest {
 protected:
  void Toml(std::string_view text) {
    Put("agents/a1/agent.toml", Text("[agent]\nname = \"a1\"\n", text));
  }
  // "file: text", errors only.
  std::vector<std::string> Check() {
    const Home home = OpenHome(path_).value();
    std::vector<std::string> lines;
    for (const ConfigProblem& problem : CheckAgents(home, surroundings_.environment)) {
      EXPECT_TRUE(problem.fatal);
      lines.push_back(Text(problem.file, ": ", problem.text));
    }
    return lines;
  }
};

TEST_F(CheckAgentsTest, NothingIsSaidOfAgentsWhoseTasksRun) {
  EXPECT_THAT(Check(), IsEmpty());
  Toml("[model]\npreferred = \"m\"\n");
  EXPECT_THAT(Check(), IsEmpty()) << "off: it runs on the host, network_access or not";
}

struct Row {
  std::string config;
  std::string agent;
  const char* file;
  const char* text;
  const char* code;  // of the agent's task
};

// What is found here, a task is refused for, and the other way round.
TEST_F(CheckAgentsTest, WhatAdmissionRefusesForTheConfigurationIsNamedWithFileAndLine) {
  const std::string on = Text(kOn, "[model]\npreferred = \"m\"\n");
  surroundings_.programs.host = "/bin/false";
  for (const Row& row : {
           Row{"", kOn, "agents/a1/agent.toml", "the agent has no model: set [model] preferred",
               "invalid_config"},
           Row{"", "[model]\npreferred = \" \"\n", "agents/a1/agent.toml",
               "set [model] preferred in agent.toml (line 4)", "invalid_config"},
           Row{"", Text(kOn, "timeout_ms = 0\n[model]\npreferred = \"m\"\n"),
               "agents/a1/agent.toml", "timeout_ms of agent.toml must not be 0 (line 6)",
               "invalid_config"},
           Row{"", "[container]\ntimeout_ms = 0\n[model]\npreferred = \"m\"\n",
               "agents/a1/agent.toml", "timeout_ms of agent.toml must not be 0 (line 4)",
               "invalid_config"},
           Row{"", Text(on, "[runtime]\nprovider = \"kiro\"\n"), "agents/a1/agent.toml",
               "openai_compat) (line 9)", "unsupported_runtime"},
           Row{"", "[model]\npreferred = \"m\"\n[runtime]\nprovider = \"openai_compat\"\n",
               "agents/a1/agent.toml", "has no program that could run on the host",
               "unsupported_runtime"},
           Row{"",
               Text(kOn, "[runtime]\nprovider = \"openai\"\n[model]\npreferred = \"nosuch/m\"\n"),
               "agents/a1/agent.toml", "names the provider `nosuch`, which is not known (line 9)",
               "invalid_config"},
           Row{"",
               Text(kOn,
                    "[runtime]\nprovider = \"openai\"\n[model]\npreferred = "
                    "\"openrouter/openai/gpt-5:online\"\n"),
               "agents/a1/agent.toml", "searches the web by itself", "invalid_config"},
           Row{"",
               "[container]\nsandbox_enabled = true\nnetwork_access = false\n[model]\n"
               "preferred = \"m\"\n",
               "agents/a1/agent.toml", "to use the sandbox (line 5)", "network_disabled"},
           Row{"[container.sandbox]\npids = 1\n", on, "agents/a1/agent.toml",
               "the limit pids (1) is too small", "invalid_config"},
           Row{"[taskcell]\nupstream_proxy = \"https://proxy.example:3128\"\n",
               Text(on, "[taskcell]\nallow_hosts = [\"a.example:443\"]\n"), "agents/a1/agent.toml",
               "goes through tunnels", "invalid_config"},
           Row{"[taskcell]\nengine = \"native\"\nroot = \"/none/such\"\n", on, "config.toml",
               "it must be a directory reached without symbolic links (line 3)", "invalid_config"},
           Row{"[taskcell]\nengine = \"native\"\nroot = \"/etc/passwd\"\n", on, "config.toml",
               "it must be a directory", "invalid_config"},
       }) {
    Put("config.toml", row.config);
    Toml(row.agent);
    EXPECT_THAT(Check(), ElementsAre(testing::AllOf(testing::StartsWith(Text(row.file, ": ")),
                                                    HasSubstr(row.text))))
        << row.agent;
    EXPECT_EQ(Run().code, row.code) << "the task agrees: " << row.agent;
    EXPECT_TRUE(state_.calls.empty()) << "no engine is asked: " << row.agent;
  }
}

TEST_F(CheckAgentsTest, AModelThatSearchesByItselfIsTakenWhereTheNetworkIsOpen) {
  Put("config.toml", "[taskcell]\negress = \"open\"\n");
  Toml(Text(kOn,
            "[runtime]\nprovider = \"openai\"\n[model]\npreferred = "
            "\"groq/compound-beta\"\n"));
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(CheckAgentsTest, OneFaultDoesNotHideAnother) {
  Toml("[runtime]\nprovider = \"kiro\"\n[container]\nsandbox_enabled = true\ntimeout_ms = 0\n");
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("`kiro`"), HasSubstr("timeout_ms"),
                                   HasSubstr("network_access")));
}

TEST_F(CheckAgentsTest, APresetThatIsBoundIsWhatIsJudgedAndNamed) {
  Put("agent_resolved/a1.toml",
      "[agent]\nname = \"a1\"\n[container]\ntimeout_ms = 0\n[model]\n"
      "preferred = \"m\"\n");
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("agent_resolved/a1.toml: [container] timeout_ms of "
                                             "agent.toml must not be 0 (line 4)")));
}

}  // namespace
}  // namespace taskcell::gateway
