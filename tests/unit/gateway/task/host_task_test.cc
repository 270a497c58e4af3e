#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "gateway/config/home.h"
#include "gateway/ledger/ledger.h"
#include "gateway/ledger/receipt_audit.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"
#include "tests/support/wait_for.h"
#include "tests/unit/gateway/task/host_fixture.h"

namespace taskcell::gateway {
namespace {

using Json = nlohmann::json;
using test::WaitFor;
using testing::HasSubstr;
using testing::Not;

// How many processes have `mark` among their arguments.
int CountProcesses(const std::string& mark) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const Result<std::string> line = sys::ReadFile(AT_FDCWD, entry.path() / "cmdline", 1U << 20);
    count += line.ok() && line->find(mark) != std::string::npos ? 1 : 0;  // else it has ended
  }
  return count;
}

TEST_F(HostTaskTest, WhatTheseTestsStartReachesNothingButLoopback) {
  AgentOff();
  PutProgram("claude",
             R"(names=$(sed -n 's/^ *\([^ ]*\):.*/\1/p' /proc/net/dev)
echo '{"type":"result","subtype":"success","result":"'$names'"}')");
  EXPECT_EQ(Run().reply, "lo");
}

TEST_F(HostTaskTest, SwitchedOffAgentRunsOnTheHostInItsDirectoryWithoutASandboxEvent) {
  AgentOff();
  PutProgram("claude",
             R"(pwd > seen; printf '%s' "$prompt" > prompt; tr '\0' ' ' < /proc/$$/cmdline > argv
env | sort > env; echo '{"type":"result","subtype":"success","result":"done"}')");
  surroundings_.environment["HOME"] = "/home/somebody";
  surroundings_.environment["DUDUCLAW_HOME"] = path_;
  surroundings_.environment["OPENAI_API_KEY"] = "sk-not-for-claude-000";
  surroundings_.environment["LD_PRELOAD"] = "/nothing.so";
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "ok") << answer.message << answer.detail;
  EXPECT_EQ(answer.reply, "done");
  EXPECT_TRUE(answer.ran_on_host);
  EXPECT_EQ(answer.receipt_path, "") << "it is in the chain alone";
  ASSERT_EQ(answer.warnings.size(), 1U);
  EXPECT_THAT(answer.warnings[0], HasSubstr("without isolation: its agent has [container] "
                                            "sandbox_enabled = false"));
  EXPECT_EQ(ReadHome("agents/a1/seen"), Text(path_, "/agents/a1\n"));
  EXPECT_THAT(ReadHome("agents/a1/prompt"), HasSubstr("# Soul\nkind"));
  EXPECT_THAT(ReadHome("agents/a1/prompt"), HasSubstr("do it"));
  EXPECT_THAT(ReadHome("agents/a1/argv"), Not(HasSubstr("sk-ant-api03-test")));
  EXPECT_THAT(ReadHome("agents/a1/argv"), Not(HasSubstr("do it")));
  const std::string seen = ReadHome("agents/a1/env");
  EXPECT_THAT(seen, HasSubstr("ANTHROPIC_API_KEY=sk-ant-api03-test\n"));
  EXPECT_THAT(seen, HasSubstr("HOME=/home/somebody\n"));
  EXPECT_THAT(seen, HasSubstr("DUDUCLAW_HOME="));
  EXPECT_THAT(seen, Not(HasSubstr("OPENAI_API_KEY")));
  EXPECT_THAT(seen, Not(HasSubstr("LD_PRELOAD")));
  EXPECT_EQ(AuditLog(), "");
  EXPECT_TRUE(state_.calls.empty()) << "no engine is asked";
  EXPECT_FALSE(std::filesystem::exists(path_ + "/sandbox"));
  Home home = OpenHome(path_).value();
  const std::vector<TaskRow> tasks =
      Ledger::OpenExisting(home.fd.get(), home.path).value().value().Tasks(10).value();
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].state, TaskState::kDone);
}

// One receipt a task, in the chain of those of cells: what was asked, what the program says it
// used, how it ended, and that nothing of it was attested.
TEST_F(HostTaskTest, ItsReceiptIsInTheChainAndClaimsNoAttestation) {
  AgentOff();
  PutProgram("claude", R"(echo '{"type":"result","subtype":"success","result":"the secret reply",)"
                       R"("usage":{"input_tokens":12,"cache_read_input_tokens":5,)"
                       R"("output_tokens":34}}')");
  const TaskAnswer answer = Run();
  ASSERT_EQ(answer.code, "ok") << answer.message << answer.detail;
  const Json receipt = Json::parse(answer.receipt_json);
  EXPECT_EQ(receipt["engine"], "host");
  EXPECT_EQ(receipt["uid_separation"], "none");
  EXPECT_EQ(receipt["attested"], false);
  EXPECT_EQ(receipt["verified"], false);
  EXPECT_EQ(receipt["task_id"], answer.task_id);
  EXPECT_EQ(receipt["runtime"], "claude");
  EXPECT_EQ(receipt["outcome"], "success");
  EXPECT_EQ(receipt["code"], "ok");
  EXPECT_EQ(receipt["job_end"], "exit 0");
  EXPECT_EQ(receipt["asked"]["kind"], "bus");
  EXPECT_EQ(receipt["asked"]["timeout_ms"], 20000);
  EXPECT_EQ(receipt["asked"]["bypassed"], false);
  EXPECT_EQ(receipt["used"]["told_by"], "program");
  EXPECT_EQ(receipt["used"]["started"], true);
  EXPECT_EQ(receipt["used"]["output_tokens"], 34);
  EXPECT_EQ(receipt["used"]["cached_tokens"], 5);
  for (const char* never : {"sk-ant-api03-test", "the secret reply", "do it"})
    EXPECT_THAT(answer.receipt_json, Not(HasSubstr(never)));

  PutProgram("claude", "exit 3");
  const TaskAnswer failed = Run();
  EXPECT_EQ(failed.code, "no_reply");
  EXPECT_EQ(Json::parse(failed.receipt_json)["job_end"], "exit 3");
  EXPECT_EQ(Json::parse(failed.receipt_json)["used"]["output_tokens"], Json());

  std::istringstream chain(ReadHome("receipts.jsonl"));
  std::vector<Json> runs;
  for (std::string line; std::getline(chain, line);) runs.push_back(Json::parse(line)["receipt"]);
  EXPECT_THAT(runs, testing::ElementsAre(receipt, Json::parse(failed.receipt_json)));
  Home home = OpenHome(path_).value();
  const ChainReport verified = VerifyReceipts(home.fd.get(), home.path).value();
  EXPECT_EQ(verified.receipts, 2);
  EXPECT_EQ(verified.fault_count, 0);

  // A refusal leaves none.
  AgentOff("[runtime]\nprovider = \"openai_compat\"\n");
  EXPECT_EQ(Run().receipt_json, "");
  EXPECT_EQ(VerifyReceipts(home.fd.get(), home.path)->receipts, 2);
}

TEST_F(HostTaskTest, EveryRuntimeWithAProgramRunsOnTheHost) {
  surroundings_.environment["OPENAI_API_KEY"] = "sk-openai-000";
  surroundings_.environment["GEMINI_API_KEY"] = "AIza-gemini-000";
  surroundings_.environment["XAI_API_KEY"] = "xai-000000";
  for (const char* runtime : {"claude", "codex", "antigravity", "grok"}) {
    AgentOff(Text("[runtime]\nprovider = \"", runtime, "\"\n"));
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.reply, "from the host") << runtime << answer.message << answer.detail;
  }
  AgentOff("[runtime]\nprovider = \"openai_compat\"\n");
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "unsupported_runtime");
  EXPECT_THAT(answer.message, HasSubstr("has no program that could run on the host"));
  EXPECT_FALSE(answer.ran_on_host);
  EXPECT_EQ(AuditLog(), "");
}

// The program's own login would do for it, but nobody said that this one pays.
TEST_F(HostTaskTest, WithoutAnAccountNothingRunsAndATokenInTheEnvironmentIsOne) {
  AgentOff();
  surroundings_.environment.erase("ANTHROPIC_API_KEY");
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "no_account") << answer.message;
  EXPECT_FALSE(answer.ran_on_host);
  EXPECT_FALSE(answer.reply.has_value());
  surroundings_.environment["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-test";
  EXPECT_EQ(Run().reply, "from the host") << "control";
}

TEST_F(HostTaskTest, RequiringACellRefusesInstead) {
  AgentOff();
  TaskRequest request{path_, "a1", "do it"};
  request.require_cell = true;
  const TaskAnswer answer = RunTask(request, surroundings_);
  EXPECT_EQ(answer.code, "cell_required");
  EXPECT_EQ(ExitStatus(answer.code), 3);
  EXPECT_FALSE(answer.ran_on_host);
  EXPECT_EQ(AuditLog(), "");
}

TEST_F(HostTaskTest, AnySwitchThatIsNoBooleanIsNeverOff) {
  for (const char* value : {"\"true\"", "1", "\"false\"", "0", "[]"}) {
    Put("agents/a1/agent.toml", Text("[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n"
                                     "[container]\nsandbox_enabled = ",
                                     value, "\n"));
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, "invalid_config") << value;
    EXPECT_FALSE(answer.ran_on_host) << value;
  }
}

TEST_F(HostTaskTest, TheStreamIsTheEvidence) {
  AgentOff();
  struct Row {
    std::string body, code;
  };
  for (const Row& row :
       {Row{R"(echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":401,)"
            R"("result":"x"}')",
            "auth_failed"},
        Row{R"(echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,)"
            R"("result":"x"}')",
            "rate_limited"},
        Row{R"(echo '{"type":"result","subtype":"error_max_turns"}'; exit 1)", "step_limit"},
        Row{"exit 3", "no_reply"}, Row{"kill -9 $$", "no_reply"},
        Row{"for i in 1 2 3 4 5; do echo noise; done", "transport_failed"},
        Row{"head -c 3000000 /dev/zero", "output_overflow"},
        Row{R"(echo '{"type":"assistant","message":{"content":[{"type":"tool_use","name":)"
            R"("WebFetch"}]}}'; echo '{"type":"result","subtype":"success","result":"fine"}')",
            "ok"}}) {
    std::filesystem::remove(path_ + "/taskcell.db");  // no account rests because of the last one
    PutProgram("claude", row.body);
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, row.code) << row.body << answer.message << answer.detail;
    EXPECT_THAT(answer.message, Not(HasSubstr("sandbox"))) << row.body;
  }
}

TEST_F(HostTaskTest, FailureHasThePlatformsOtherForm) {
  AgentOff();
  PutProgram("claude", "exit 3");
  EXPECT_EQ(
      DelegationReply(Run()),
      "⚠️ 子任務處理失敗：the claude CLI on the host ended without a reply (exit 3)"
      "。請稍後再試或改寫指令。");
}

TEST_F(HostTaskTest, ProgramThatIsNotThereIsNamed) {
  AgentOff();
  std::filesystem::remove(path_ + "/bin/claude");
  surroundings_.environment["PATH"] = path_ + "/bin";
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "invalid_config");
  EXPECT_THAT(answer.message, HasSubstr("`claude` cannot be started on the host"));
}

TEST_F(HostTaskTest, RefusedAccountIsFollowedByTheNextWhileNoToolRan) {
  AgentOff();
  Put("config.toml",
      "[[accounts]]\nid = \"dead\"\npriority = 1\napi_key = \"secret://env/DEAD\"\n"
      "[[accounts]]\nid = \"live\"\npriority = 2\napi_key = \"secret://env/LIVE\"\n");
  surroundings_.environment["DEAD"] = "sk-ant-api03-dead";
  surroundings_.environment["LIVE"] = "sk-ant-api03-live";
  PutProgram(
      "claude",
      R"(case $ANTHROPIC_API_KEY in *live) echo '{"type":"result","subtype":"success","result":"paid"}';;
*) echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"x"}';; esac)");
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.reply, "paid") << answer.message;
  EXPECT_THAT(answer.warnings.at(0), HasSubstr("account `dead`: auth_failed; account `live`"));
}

// Its rate limit is learnt all the same: the next task begins with the other account.
TEST_F(HostTaskTest, AnAccountThatIsLimitedAfterAToolRanIsNotFollowedInTheSameTask) {
  AgentOff();
  Put("config.toml",
      "[[accounts]]\nid = \"spent\"\npriority = 1\napi_key = \"secret://env/SPENT\"\n"
      "[[accounts]]\nid = \"live\"\npriority = 2\napi_key = \"secret://env/LIVE\"\n");
  surroundings_.environment["SPENT"] = "sk-ant-api03-spent";
  surroundings_.environment["LIVE"] = "sk-ant-api03-live";
  PutProgram("claude", Text("echo $ANTHROPIC_API_KEY >>", path_, "/paid\n", R"(
case $ANTHROPIC_API_KEY in *live) echo '{"type":"result","subtype":"success","result":"paid"}';;
*) echo '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"}]}}'
echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"x"}';; esac)"));
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "rate_limited") << answer.message;
  EXPECT_EQ(ReadHome("paid"), "sk-ant-api03-spent\n");
  EXPECT_THAT(answer.warnings, Not(testing::Contains(HasSubstr("is tried next"))));
  EXPECT_EQ(Run().reply, "paid");
  EXPECT_EQ(ReadHome("paid"), "sk-ant-api03-spent\nsk-ant-api03-live\n");
}

TEST_F(HostTaskTest, DeadlineEndsAlsoWhatStartedASessionOfItsOwn) {
  const std::string mark = path_ + "/marked";
  for (const bool by_cancel : {false, true}) {
    Put("agents/a1/agent.toml",
        Text("[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n[container]\ntimeout_ms = ",
             by_cancel ? 20000 : 5000, "\n"));
    PutProgram("claude", Text("setsid sh -c 'setsid sleep 1000 ", mark, " & exec sleep 1001 ", mark,
                              "' ", mark, " & trap '' TERM; : > up; sleep 1002"));
    // sleep(1) refuses a second argument that is no time, so a copy of it that does not.
    Put("bin/sleep", "#!/bin/sh\nexec /usr/bin/tail -f /dev/null \"$2\" 2>/dev/null\n");
    ASSERT_EQ(::chmod((path_ + "/bin/sleep").c_str(), 0755), 0);
    sys::Pipe pipe = sys::MakePipe().value();
    surroundings_.cancel_fd = by_cancel ? pipe.read_end.get() : -1;
    bool were_there = false;
    std::thread other([&] {
      were_there = WaitFor([&] { return CountProcesses(mark) >= 2; });
      if (by_cancel) (void)sys::WriteAll(pipe.write_end.get(), "x");
    });
    const TaskAnswer answer = Run();
    other.join();
    EXPECT_TRUE(were_there) << "control";
    EXPECT_EQ(answer.code, by_cancel ? "stopped" : "timeout") << answer.message;
    EXPECT_EQ(CountProcesses(mark), 0);
  }
}

TEST_F(HostTaskTest, NothingOutlivesAGatewayThatWasKilled) {
  AgentOff();
  const std::string mark = path_ + "/marked";
  PutProgram("claude", Text("setsid tail -f /dev/null ", mark, " 2>/dev/null & tail -f /dev/null ",
                            mark, " 2>/dev/null"));
  const pid_t gateway = ::fork();
  ASSERT_GE(gateway, 0);
  if (gateway == 0) {
    (void)Run();
    ::_exit(0);
  }
  EXPECT_TRUE(WaitFor([&] { return CountProcesses(mark) >= 2; })) << "control";
  ASSERT_EQ(::kill(gateway, SIGKILL), 0);
  EXPECT_EQ(::waitpid(gateway, nullptr, 0), gateway);
  EXPECT_TRUE(WaitFor([&] { return CountProcesses(mark) == 0; }));
}

TEST_F(HostTaskTest, NothingOutlivesASupervisorThatWasKilled) {
  AgentOff();
  PutProgram("claude", "echo $PPID > supervisor; exec tail -f /dev/null " + path_ + "/marked");
  std::thread other([&] {
    std::string pid;
    EXPECT_TRUE(WaitFor([&] {
      pid = ReadHome("agents/a1/supervisor");
      return pid.ends_with("\n");
    }));
    EXPECT_EQ(::kill(std::stoi(pid), SIGKILL), 0);
  });
  const TaskAnswer answer = Run();
  other.join();
  EXPECT_EQ(answer.code, "result_incomplete") << answer.message;
  EXPECT_TRUE(WaitFor([&] { return CountProcesses(path_ + "/marked") == 0; }));
}

TEST_F(HostTaskTest, LinksOfEitherKindAreLeftOutOfThePromptWithAWarning) {
  AgentOff();
  PutProgram("claude", R"(printf '%s' "$prompt" > prompt
echo '{"type":"result","subtype":"success","result":"done"}')");
  std::ofstream(path_ + "/elsewhere") << "canary of another file";
  std::ofstream(path_ + "/agents/a1/SOUL.md") << "a soul of its own";
  ASSERT_EQ(::symlink("/etc/hostname", (path_ + "/agents/a1/IDENTITY.md").c_str()), 0);
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "ok") << answer.message;
  EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr("IDENTITY.md: it is a symbolic link")));
  EXPECT_THAT(ReadHome("agents/a1/prompt"), HasSubstr("a soul of its own")) << "control";

  ASSERT_EQ(::unlink((path_ + "/agents/a1/IDENTITY.md").c_str()), 0);
  ASSERT_EQ(::link((path_ + "/elsewhere").c_str(), (path_ + "/agents/a1/IDENTITY.md").c_str()), 0);
  answer = Run();
  EXPECT_EQ(answer.code, "ok") << answer.message;
  EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr("IDENTITY.md: it has 2 hard links")));
  EXPECT_THAT(ReadHome("agents/a1/prompt"), Not(HasSubstr("canary")));
}

// What a stand-in of antigravity prints, leaves out or forges.
TEST_F(HostTaskTest, EachTrapOfAntigravityEndsAsItMust) {
  AgentOff("[runtime]\nprovider = \"antigravity\"\n");
  surroundings_.environment["GEMINI_API_KEY"] = "AIza-gemini-000";
  const std::string step =
      R"(echo '{"event":"step_update","step_update":{"step_type":"agent_response","step_index":1,)"
      R"("text_delta":"so far","state":"DONE"}}')";
  const std::string good = R"({"event":"result","status":"SUCCESS","response":"fine"})";
  struct Trap {
    std::string name, body, code, reply;
  };
  for (const Trap& trap : {
           Trap{"control", "echo '" + good + "'", "ok", "fine"},
           Trap{"a raw newline",
                R"(printf '{"event":"result","status":"SUCCESS","response":"fi\n')"
                R"(; echo 'ne"}')",
                "ok", "fi\nne"},
           Trap{"no result", step, "no_reply", ""},
           Trap{"nothing", "true", "no_reply", ""},
           Trap{"a result that is none",
                R"(echo '{"event":"result","status":"ERROR","response":"x"}')", "no_reply", ""},
           Trap{"a result and a failure", "echo '" + good + "'; exit 3", "no_reply", ""},
           Trap{"chatter", "echo hi; echo '" + good + "'; echo bye", "ok", "fine"},
           Trap{"no newline at the end", "printf '%s' '" + good + "'", "ok", "fine"},
           Trap{"junk", "for i in 1 2 3 4; do echo junk; done; echo '" + good + "'",
                "transport_failed", ""},
           Trap{"a line over its bound", "head -c 1048577 /dev/zero; sleep 20", "output_overflow",
                ""},
       }) {
    SCOPED_TRACE(trap.name);
    std::filesystem::remove(path_ + "/taskcell.db");
    std::filesystem::remove_all(path_ + "/logs");
    PutProgram("agy", trap.body);
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, trap.code) << answer.message << answer.detail;
    EXPECT_EQ(answer.reply.value_or(""), trap.reply);
    const std::string log = Log();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), answer.ok() ? 0 : 1) << log;
  }
  PutProgram("agy", "for i in $(seq 40); do " + step + "; done; sleep 20");
  const TaskAnswer limited = Run();
  EXPECT_TRUE(limited.ok()) << limited.message;
  EXPECT_TRUE(limited.step_limit) << "the text before it is the reply";
  ASSERT_EQ(::chmod((path_ + "/bin/agy").c_str(), 0644), 0);
  EXPECT_EQ(Run().code, "invalid_config");
  std::filesystem::remove(path_ + "/bin/agy");
  EXPECT_EQ(Run().code, "invalid_config");
}

}  // namespace
}  // namespace taskcell::gateway
