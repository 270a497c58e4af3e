// A cell that Docker makes, with the real taskcell-init in it: attested, equal to its plan, and a
// job that runs and leaves nothing.
#include <gtest/gtest.h>

#include <filesystem>

#include "launcher/cgroup/events.h"
#include "tests/engine/docker_cell_fixture.h"
#include "tests/support/cell_session.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;

TEST_F(DockerCellTest, ACellIsExactlyWhatWasPlannedAndRunsItsJob) {
  MakeJobImage();
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kDocker);
  EXPECT_EQ(session.Differences(), std::multiset<std::string>{}) << session.Described();
  auto end = session.Run({"/bin/actor", "cat", "/agent/SOUL.md"});
  EXPECT_EQ(end.outcome, gate::JobOutcome::kExited);
  EXPECT_EQ(end.exit.code, 0) << end.refusal.stage << session.err;
  EXPECT_EQ(session.out, "a soul\n");
  auto events = made.value()->ReadEvents();
  ASSERT_TRUE(events.ok()) << events.error().text;
  EXPECT_EQ(events->oom_kills, 0U);
  EXPECT_TRUE(events->peak_memory_bytes.has_value() && *events->peak_memory_bytes > 0);
  EXPECT_TRUE(session.host.Done().ok());
  EXPECT_TRUE(made.value()->Remove().ok());
}

TEST_F(DockerCellTest, AJobWritesOnlyWhereItMay) {
  struct Row {
    const char* path;
    int status;
  };
  // /workspace is the control: the same program, the same call.
  for (const Row& row :
       {Row{"/workspace/x", 0}, Row{"/tmp/x", 0}, Row{"/x", 3}, Row{"/agent/x", 3},
        Row{"/agent/SOUL.md", 3}, Row{"/run/taskcell/gate.d/x", 3}, Row{"/run/taskcell/init", 3}}) {
    run_id_[0] = run_id_[0] == 'f' ? '0' : 'f';
    MakeJobImage();
    auto made = Make(AgentPlan());
    ASSERT_TRUE(made.ok()) << made.error().text;
    CellSession session(*made.value(), cell::Engine::kDocker);
    ASSERT_TRUE(session.Differences().empty()) << session.Described();
    auto end = session.Run({"/bin/actor", "write", row.path});
    EXPECT_EQ(end.exit.code, row.status) << row.path;
    EXPECT_TRUE(made.value()->Remove().ok());
  }
  EXPECT_EQ(std::filesystem::file_size(agent_ + "/SOUL.md"), 7U);
}

TEST_F(DockerCellTest, NothingOfTheImagesEnvironmentReachesTheFirstProcessOrTheJob) {
  MakeJobImage({{"Env", {"LD_PRELOAD=/evil.so", "BASH_ENV=/evil", "NODE_OPTIONS=--evil"}}});
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kDocker);
  EXPECT_TRUE(session.Differences().empty()) << session.Described();
  auto end = session.Run({"/bin/actor", "cat", "/proc/self/environ"});
  EXPECT_EQ(end.exit.code, 0);
  EXPECT_EQ(session.out, std::string("PATH=/bin\0ONLY=this\0", 20));
  EXPECT_TRUE(made.value()->Remove().ok());
}

// What a job leaves running when it ends: every process it could make, each flooding its output.
TEST_F(DockerCellTest, AJobThatLeavesABombBehindEndsAllTheSame) {
  MakeJobImage();
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kDocker);
  ASSERT_TRUE(session.Differences().empty()) << session.Described();
  auto end = session.Run({"/bin/actor", "bomb", "7"});
  EXPECT_EQ(end.outcome, gate::JobOutcome::kExited);
  EXPECT_EQ(end.exit.code, 7);
  EXPECT_FALSE(end.deadline_passed);
  auto events = made.value()->ReadEvents();
  ASSERT_TRUE(events.ok()) << events.error().text;
  EXPECT_GT(events->pids_refusals, 0U) << "control: it did reach the limit";
  EXPECT_TRUE(session.host.Done().ok());
  EXPECT_TRUE(made.value()->Remove().ok());
}

// Memory as a device node of the image: the engine's device rules stand before it. The null device,
// which they allow, is the control: such a node is there and can be opened.
TEST_F(DockerCellTest, ADeviceNodeOfTheImageIsNoWayToTheDevice) {
  constexpr int kCannotRead = 4;
  for (const auto& [path, status] :
       std::initializer_list<std::pair<const char*, int>>{{"/null", 0}, {"/memory", kCannotRead}}) {
    run_id_[0] = run_id_[0] == 'f' ? '0' : 'f';
    MakeJobImage(Json::object(),
                 {{"/null", {{"device", {1, 3}}}}, {"/memory", {{"device", {1, 1}}}}});
    auto made = Make(AgentPlan());
    ASSERT_TRUE(made.ok()) << made.error().text;
    CellSession session(*made.value(), cell::Engine::kDocker);
    ASSERT_TRUE(session.Differences().empty()) << session.Described();
    EXPECT_EQ(session.Run({"/bin/actor", "cat", path}).exit.code, status) << path;
    EXPECT_TRUE(made.value()->Remove().ok());
  }
}

TEST_F(DockerCellTest, ImageVolumesAreCoveredEmptyAndReadOnly) {
  MakeJobImage({{"Volumes", {{"/data", Json::object()}, {"/workspace", Json::object()}}}},
               {{"/data/image.txt", {{"text", "from the image"}}}});
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kDocker);
  EXPECT_TRUE(session.Differences().empty()) << session.Described();
  auto end = session.Run({"/bin/actor", "write", "/data/x"});
  EXPECT_EQ(end.exit.code, 3);
  EXPECT_TRUE(made.value()->Remove().ok());
}

}  // namespace
}  // namespace taskcell::test
