#include "gateway/task/uncovered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/gateway/task/host_fixture.h"

namespace taskcell::gateway {
namespace {

using testing::HasSubstr;

class UncoveredTest : public HostTaskTest {
 protected:
  void SetUp() override {
    HostTaskTest::SetUp();
    surroundings_.is_first_uncovered = [this](const std::string& agent, TaskKind kind) {
      return paths_.IsFirst(agent, kind);
    };
  }
  TaskAnswer RunKind(std::string_view kind, std::string role = "", bool require_cell = false) {
    TaskRequest request{path_, "a1", "do it"};
    request.kind = ParseTaskKind(kind).value();
    request.team_role = std::move(role);
    request.require_cell = require_cell;
    return RunTask(request, surroundings_);
  }
  UncoveredPaths paths_;
};

TEST_F(UncoveredTest, PathsThatAreNotCoveredRunOnTheHostAndAreToldOnce) {
  std::size_t events = 0;
  for (const char* path :
       {"channel_reply", "cron", "reminder", "proactive", "ephemeral", "acp", "eval"}) {
    for (int turn = 0; turn < 2; ++turn) {
      const TaskAnswer answer = RunKind(path);
      EXPECT_EQ(answer.reply, "from the host") << path << answer.message;
      EXPECT_TRUE(answer.ran_on_host);
    }
    ++events;
    EXPECT_EQ(Events(), std::vector<std::string>(events, "task_sandbox_not_applied")) << path;
    EXPECT_THAT(AuditLog(), HasSubstr(Text("\"details\":{\"action\":\"ran_on_host\",\"path\":\"",
                                           path, "\"}")));
    EXPECT_THAT(Log(), HasSubstr(Text(" WARN sandbox_not_applied agent=a1 path=", path,
                                      " action=ran_on_host\n")));
  }
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 7);
  EXPECT_TRUE(state_.calls.empty()) << "no engine is asked";
}

TEST_F(UncoveredTest, AfterARestartTheFirstUseIsToldAgain) {
  EXPECT_EQ(RunKind("cron").code, "ok");
  UncoveredPaths fresh;
  surroundings_.is_first_uncovered = [&](const std::string& agent, TaskKind kind) {
    return fresh.IsFirst(agent, kind);
  };
  EXPECT_EQ(RunKind("cron").code, "ok");
  EXPECT_EQ(Events().size(), 2U);
}

TEST_F(UncoveredTest, NothingRunsForMailAndItStaysWhereItIs) {
  Put("agents/a1/inbox/1", "mail");
  PutProgram("claude", "touch " + path_ + "/ran");
  const std::set<std::string> before = Tree();
  for (int turn = 0; turn < 2; ++turn) {
    const TaskAnswer answer = RunKind("mail");
    EXPECT_EQ(answer.code, "skipped");
    EXPECT_FALSE(answer.reply.has_value());
    EXPECT_FALSE(answer.ran_on_host);
  }
  EXPECT_EQ(Tree(), before);
  EXPECT_EQ(ReadHome("agents/a1/inbox/1"), "mail");
  EXPECT_FALSE(std::filesystem::exists(path_ + "/taskcell.db")) << "nothing is queued";
  EXPECT_EQ(Events(), std::vector<std::string>{"task_sandbox_not_applied"});
  EXPECT_THAT(AuditLog(), HasSubstr("{\"action\":\"skipped\",\"path\":\"mail\"}"));
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr(" WARN sandbox_not_applied agent=a1 path=mail action=skipped\n"));
}

TEST_F(UncoveredTest, OnlyMailIsAnsweredWithoutItsTurn) {
  PutProgram("claude", "touch " + path_ + "/ran");
  TaskRequest request{path_, "a1", "do it"};
  for (const char* kind : {"bus", "cron", "goal_round", "ephemeral"}) {
    request.kind = ParseTaskKind(kind).value();
    EXPECT_FALSE(SkipTask(request, surroundings_).has_value()) << kind;
  }
  request.kind = TaskKind::kMail;
  for (int turn = 0; turn < 2; ++turn) EXPECT_EQ(SkipTask(request, surroundings_)->code, "skipped");
  EXPECT_EQ(Events(), std::vector<std::string>{"task_sandbox_not_applied"});
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  request.agent = "nobody";
  EXPECT_FALSE(SkipTask(request, surroundings_).has_value()) << "its turn tells what is wrong";
  request.agent = "a1";
  AgentOff();
  EXPECT_FALSE(SkipTask(request, surroundings_).has_value()) << "it is a task like any other";
  EXPECT_FALSE(std::filesystem::exists(path_ + "/ran"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/taskcell.db"));
}

TEST_F(UncoveredTest, AgentWithTheSwitchOffGetsNoEvent) {
  AgentOff();
  for (const char* path : {"cron", "mail", "bus"}) EXPECT_EQ(RunKind(path).code, "ok") << path;
  EXPECT_EQ(AuditLog(), "");
  EXPECT_EQ(Log(), "");
  EXPECT_TRUE(paths_.IsFirst("a1", TaskKind::kCron)) << "its turn is not used up";
}

TEST_F(UncoveredTest, CoveredKindsGoToTheEngine) {
  for (const char* kind : {"bus", "dashboard", "heartbeat", "autopilot_delegate",
                           "autopilot_run_skill", "goal_round", "plan_step"}) {
    state_.plan.reset();
    EXPECT_EQ(RunKind(kind).code, "container_create_failed") << kind;
    EXPECT_TRUE(state_.plan.has_value()) << kind;
  }
  EXPECT_EQ(AuditLog(), "");
}

TEST_F(UncoveredTest, MembersOfATeamNeverRunForASandboxedAgent) {
  PutProgram("claude", "touch " + path_ + "/ran");
  for (const char* role : {"planner", "executor", "verifier", "synthesiser"}) {
    const TaskAnswer answer = RunKind("goal_round", role);
    EXPECT_EQ(answer.code, "team_round_refused") << role;
    EXPECT_EQ(ExitStatus(answer.code), 3);
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + "/ran"));
  EXPECT_TRUE(state_.calls.empty());
  AgentOff();
  (void)RunKind("goal_round", "planner");
  EXPECT_TRUE(std::filesystem::exists(path_ + "/ran")) << "control: with the switch off it does";
}

TEST_F(UncoveredTest, RequiringACellRefusesAnUncoveredPath) {
  EXPECT_EQ(RunKind("cron", "", true).code, "cell_required");
  EXPECT_EQ(AuditLog(), "") << "nothing ran on the host";
}

}  // namespace
}  // namespace taskcell::gateway
