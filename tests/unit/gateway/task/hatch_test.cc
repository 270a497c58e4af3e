// The escape hatch: which refusals it lets onto the host, and which it never does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "launcher/sys/socket.h"
#include "tests/unit/gateway/task/host_fixture.h"
#include "tests/unit/gateway/task/waiting_cell.h"

namespace taskcell::gateway {
namespace {

using testing::HasSubstr;

constexpr char kOpen[] = "when_unavailable = \"run_unsandboxed\"\n";
const std::vector<std::string> kBypass = {"task_sandbox_unavailable", "task_sandbox_bypassed"};

class HatchTest : public HostTaskTest {
 protected:
  // Puts everything back as it is for an agent that may run.
  void Reset() {
    Put("config.toml", Text("[container.sandbox]\n", kOpen));
    Agent("a1", "");
    state_.fail_at = "";
    state_.code = "";
    state_.rootless = false;
    state_.make_cell = {};
    state_.make_error.reset();
    state_.may_have_made = false;
    state_.kind = cell::Engine::kDocker;
    surroundings_.effective_uid = 1500;
    surroundings_.environment["ANTHROPIC_API_KEY"] = "sk-ant-api03-test";
    surroundings_.environment["GEMINI_API_KEY"] = "AIza-test-000";
    std::filesystem::remove(path_ + "/security_audit.jsonl");
  }
};

TEST_F(HatchTest, EveryRefusalBeforeTheTasksOwnCellIsBypassedWithBothEvents) {
  auto engine = [this](std::string at, std::string_view code) {
    state_.fail_at = std::move(at);
    state_.code = code;
  };
  const std::vector<std::pair<std::string, std::function<void()>>> rows = {
      {"invalid_config",
       [&] { Put("config.toml", Text("[container.sandbox]\npids = -1\n", kOpen)); }},
      {"invalid_config", [&] { Agent("a1", "[taskcell.limits]\npids = 1\n"); }},
      {"network_disabled", [&] { Agent("a1", "", "false"); }},
      {"root_user", [&] { surroundings_.effective_uid = 0; }},
      {"unsupported_platform", [&] { engine("reach", "unsupported_platform"); }},
      {"engine_unsupported", [&] { engine("reach", "engine_unsupported"); }},
      {"docker_unreachable", [&] { engine("reach", "docker_unreachable"); }},
      {"image_missing", [&] { engine("image", "image_missing"); }},
      {"resource_limits_unenforced",
       [&] {
         state_.rootless = true;
         engine("make", "resource_limits_unenforced");
       }},
      {"no_account", [&] { surroundings_.environment.erase("ANTHROPIC_API_KEY"); }},
  };
  for (const auto& [code, make] : rows) {
    Reset();
    make();
    for (int turn = 1; turn <= 2; ++turn) {
      const TaskAnswer answer = Run();
      EXPECT_EQ(answer.code, "ok") << code << answer.message;
      EXPECT_EQ(answer.reply, "from the host") << code;
      EXPECT_TRUE(answer.ran_on_host) << code;
      EXPECT_EQ(Events().size(), 2U * static_cast<std::size_t>(turn)) << "each time: " << code;
    }
    EXPECT_EQ(Events()[0], kBypass[0]) << code;
    EXPECT_EQ(Events()[1], kBypass[1]) << code;
    EXPECT_THAT(AuditLog(), HasSubstr(Text("\"details\":{\"reason\":\"", code, "\",\"runtime\":")));
    EXPECT_THAT(AuditLog(), HasSubstr("\"when_unavailable\":\"run_unsandboxed\""));
  }
}

// The audit log claims no run on the host that never was.
TEST_F(HatchTest, WhatTheHostCannotRunEitherIsNotBypassed) {
  struct Row {
    const char* agent;
    const char* code;
    const char* why;
  };
  for (const Row& row :
       {Row{"[runtime]\nprovider = \"kiro\"\n", "unsupported_runtime", "has no program"},
        Row{"[runtime]\nprovider = \"openai_compat\"\n[model]\npreferred = \"openai/gpt-5\"\n",
            "docker_unreachable", "has no program"},
        Row{"[model]\npreferred = \" \"\n", "invalid_config", "the agent has no model"}}) {
    Reset();
    state_.fail_at = "reach";
    state_.code = "docker_unreachable";
    Agent("a1", row.agent);
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, row.code) << row.agent << answer.message;
    EXPECT_FALSE(answer.ran_on_host) << row.agent;
    EXPECT_FALSE(answer.reply.has_value()) << row.agent;
    EXPECT_EQ(Events(), std::vector<std::string>{kBypass[0]}) << row.agent;
    EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr(row.why))) << row.agent;
    EXPECT_THAT(DelegationReply(answer), HasSubstr("任務沙箱")) << row.agent;
  }
}

TEST_F(HatchTest, WithTheHatchClosedEachOfThemIsARefusal) {
  for (const char* value : {"\"fail\"", "\"Run_Unsandboxed\"", "true", "\"\""}) {
    Reset();
    Put("config.toml", Text("[container.sandbox]\npids = -1\nwhen_unavailable = ", value, "\n"));
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, "invalid_config") << value;
    EXPECT_FALSE(answer.ran_on_host) << value;
    EXPECT_EQ(Events(), std::vector<std::string>{kBypass[0]}) << value;
    EXPECT_THAT(AuditLog(), HasSubstr("\"when_unavailable\":\"fail\"")) << value;
  }
}

TEST_F(HatchTest, ScriptsHatchOpensNothingForTasks) {
  Reset();
  Put("config.toml",
      "[container.sandbox]\npids = -1\nscript_when_unavailable = \"run_unsandboxed\"\n");
  EXPECT_EQ(Run().code, "invalid_config");
}

TEST_F(HatchTest, FailuresAreNeverBypassed) {
  for (const char* code : {"container_refused", "container_create_failed", "workspace_failed",
                           "cell_mismatch", "transport_failed", "agent_dir_unmountable"}) {
    Reset();
    state_.fail_at = "make";
    state_.code = code;
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, code);
    EXPECT_FALSE(answer.ran_on_host);
    EXPECT_EQ(AuditLog(), "") << code;
  }
}

// A cell whose limits are not in force, and one without its program: codes that would be bypassed
// if no cell had been made.
TEST_F(HatchTest, NothingIsBypassedOnceTheTasksOwnCellWasMade) {
  Reset();
  UniqueFd first_process;
  state_.make_cell = [&](const cell::CellPlan& plan) {
    sys::SocketPair pair = sys::MakePacketPair().value();
    first_process = std::move(pair.first);
    cell::CellPlan other = plan;
    other.limits.pids += 1;
    Attest(other, first_process.get());
    return std::make_unique<WaitingCell>(plan, std::move(pair.second), [] {});
  };
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "resource_limits_unenforced") << answer.message;
  EXPECT_FALSE(answer.ran_on_host);
  EXPECT_EQ(Events(), std::vector<std::string>{kBypass[0]});
  EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr("a cell of its own was made")));
}

// As at a rootful gVisor, which no probe asks before: the task's own cell finds it out.
TEST_F(HatchTest, AnEngineWhoseSocketsDoNotCrossIsUnreachableAndNotBypassed) {
  const Error nobody =
      Error(Kind::kViolation, "gate: nobody came", ETIMEDOUT).Coded("cell_mismatch");
  Reset();
  state_.may_have_made = true;
  state_.make_error = nobody;
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "docker_unreachable") << answer.message;
  EXPECT_THAT(answer.message, HasSubstr("can't share a socket with this host"));
  EXPECT_THAT(answer.detail, HasSubstr("(fake; gate: nobody came)")) << "the engine's name";
  EXPECT_FALSE(answer.ran_on_host);
  EXPECT_EQ(Events(), std::vector<std::string>{kBypass[0]});
  Reset();
  state_.make_error = nobody;
  state_.kind = cell::Engine::kNative;
  answer = Run();
  EXPECT_EQ(answer.code, "cell_mismatch") << "our own launcher shares it";
}

TEST_F(HatchTest, WithoutItsAuditLinesTheTaskIsNotRun) {
  Reset();
  Agent("a1", "", "false");
  std::filesystem::create_directory(path_ + "/security_audit.jsonl");
  PutProgram("claude", "touch " + path_ + "/ran");
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "network_disabled");
  EXPECT_FALSE(answer.ran_on_host);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/ran"));
}

// The disk has room for none of the two lines, for the first alone, or for both.
TEST_F(HatchTest, WithOnlyTheFirstOfItsAuditLinesTheTaskIsNotRunEither) {
  Reset();
  Agent("a1", "", "false");
  ASSERT_EQ(Run().code, "ok");
  const std::string both = AuditLog();
  const std::size_t first = both.find('\n') + 1;
  PutProgram("claude", Text("touch ", path_, R"(/ran; echo '{"type":"result","result":"done"}')"));
  auto run = [this](std::size_t room, std::string_view code, bool on_host) {
    const int status = WithRoomInAuditLog(room, [&] {
      const TaskAnswer answer = Run();
      EXPECT_EQ(answer.code, code) << room;
      EXPECT_EQ(answer.ran_on_host, on_host) << room;
      EXPECT_EQ(answer.reply.has_value(), on_host) << room;
      if (!on_host) {
        EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr("audit log: "))) << room;
        EXPECT_THAT(answer.warnings,
                    testing::Contains(HasSubstr(
                        "does not apply, the task was not run: the audit log cannot be written")));
      }
      return HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(status, 0) << room;
    EXPECT_EQ(std::filesystem::exists(path_ + "/ran"), on_host) << room;
    EXPECT_EQ(Log().find("WARN task_failed agent=a1 code=network_disabled unavailable=true") !=
                  std::string::npos,
              !on_host)
        << room << Log();
    std::filesystem::remove_all(path_ + "/logs");
  };
  run(first - 1, "network_disabled", false);
  EXPECT_EQ(Events(), std::vector<std::string>());
  run(first, "network_disabled", false);
  EXPECT_EQ(Events(), std::vector<std::string>{kBypass[0]});
  run(both.size() - 1, "network_disabled", false);
  EXPECT_EQ(Events(), std::vector<std::string>{kBypass[0]});
  run(both.size(), "ok", true);
  EXPECT_EQ(Events(), kBypass) << "control";
}

TEST_F(HatchTest, RequiringACellKeepsTheHatchShut) {
  Reset();
  Agent("a1", "", "false");
  TaskRequest request{path_, "a1", "do it"};
  request.require_cell = true;
  const TaskAnswer answer = RunTask(request, surroundings_);
  EXPECT_EQ(answer.code, "network_disabled");
  EXPECT_EQ(Events(), std::vector<std::string>{kBypass[0]});
}

}  // namespace
}  // namespace taskcell::gateway
