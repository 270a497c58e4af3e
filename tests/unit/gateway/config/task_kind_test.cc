#include "gateway/config/task_kind.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

TEST(TaskKindTest, EveryKindOfTheListIsKnownByItsNameAndRunsWhereTheGuideSays) {
  const std::map<std::string, Coverage> guide = {{"bus", Coverage::kInCell},
                                                 {"dashboard", Coverage::kInCell},
                                                 {"heartbeat", Coverage::kInCell},
                                                 {"autopilot_delegate", Coverage::kInCell},
                                                 {"autopilot_run_skill", Coverage::kInCell},
                                                 {"goal_round", Coverage::kInCell},
                                                 {"plan_step", Coverage::kInCell},
                                                 {"channel_reply", Coverage::kOnHost},
                                                 {"cron", Coverage::kOnHost},
                                                 {"reminder", Coverage::kOnHost},
                                                 {"mail", Coverage::kSkipped},
                                                 {"proactive", Coverage::kOnHost},
                                                 {"ephemeral", Coverage::kOnHost},
                                                 {"acp", Coverage::kOnHost},
                                                 {"eval", Coverage::kOnHost}};
  EXPECT_EQ(Split(TaskKindNames(), ',').size(), guide.size());
  for (const auto& [name, coverage] : guide) {
    Result<TaskKind> kind = ParseTaskKind(name);
    ASSERT_TRUE(kind.ok()) << name;
    EXPECT_EQ(TaskKindName(kind.value()), name);
    EXPECT_EQ(CoverageOf(kind.value()), coverage) << name;
  }
}

TEST(TaskKindTest, AnythingElseIsRefusedAndTheListNamed) {
  for (const char* name : {"", "Bus", "bus ", "run", "goal-round", "channel_reply2"}) {
    Result<TaskKind> kind = ParseTaskKind(name);
    ASSERT_FALSE(kind.ok()) << name;
    EXPECT_EQ(kind.error().code, "unknown_kind");
    EXPECT_NE(kind.error().text.find("bus, dashboard, heartbeat"), std::string::npos);
  }
}

}  // namespace
}  // namespace taskcell::gateway
