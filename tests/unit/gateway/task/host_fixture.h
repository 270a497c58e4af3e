#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/own_network.h"
#include "tests/unit/gateway/task/run_task_fixture.h"

namespace taskcell::gateway {

// Scripts in the place of the runtimes' programs, in the PATH of the host runs.
class HostTaskTest : public RunTaskTest {
 protected:
  void SetUp() override {
    TASKCELL_ENTER_OWN_NETWORK();
    RunTaskTest::SetUp();
    if (HasFatalFailure()) return;
    surroundings_.programs.host = HOST_PROGRAM;
    surroundings_.environment["PATH"] = path_ + "/bin:/usr/bin:/bin";
    for (const char* name : {"claude", "grok"})
      PutProgram(name, R"(echo '{"type":"result","subtype":"success","result":"from the host"}')");
    PutProgram("codex", R"(echo '{"type":"item.completed","item":{"type":"agent_message",)"
                        R"("text":"from the host"}}'; echo '{"type":"turn.completed"}')");
    PutProgram("agy", R"(echo '{"event":"result","status":"SUCCESS","response":"from the host"}')");
  }

  // `body` is run by sh after the prompt was read into $prompt.
  void PutProgram(const std::string& name, std::string_view body) const {
    Put("bin/" + name, Text("#!/bin/sh\nprompt=$(cat)\n", body, "\n"));
    ASSERT_EQ(::chmod((path_ + "/bin/" + name).c_str(), 0755), 0);
  }

  // agent.toml of an agent whose switch is off; `changes` as in Agent.
  void AgentOff(std::string_view changes = "") const {
    Put("agents/a1/agent.toml", Text("[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n"
                                     "[container]\ntimeout_ms = 20000\n",
                                     changes));
  }

  std::string ReadHome(const std::string& name) const {
    std::ifstream in(path_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // The types of the audit events, in order.
  std::vector<std::string> Events() const {
    std::vector<std::string> types;
    constexpr std::string_view kKey = "\"event_type\":\"";
    const std::string log = AuditLog();
    for (std::size_t at = log.find(kKey); at != std::string::npos; at = log.find(kKey, at + 1)) {
      const std::size_t begin = at + kKey.size();
      types.push_back(log.substr(begin, log.find('"', begin) - begin));
    }
    return types;
  }

  // Runs `body` in a child whose audit log, larger than any other file of the home, may grow by
  // `bytes` and no further, as on a full disk. What it returns is the child's exit status.
  int WithRoomInAuditLog(std::size_t bytes, const std::function<int()>& body) const {
    constexpr std::size_t kLarge = 4U << 20U;
    constexpr int kNoLimit = 90;
    Put("security_audit.jsonl", std::string(kLarge - 1, ' ') + "\n");
    return test::InChild([&] {
      const struct rlimit limit = {kLarge + bytes, kLarge + bytes};
      (void)std::signal(SIGXFSZ, SIG_IGN);
      return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 ? body() : kNoLimit;
    });
  }
};

}  // namespace taskcell::gateway
