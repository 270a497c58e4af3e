// Images that try to turn a mount somewhere else, or bring something along. Whatever the engine
// makes of them is either exactly the planned cell or no cell.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/engine/docker_cell_fixture.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;

struct HostileImage {
  const char* name;
  const char* files;   // JSON, as make_image.py takes it
  const char* config;  // JSON
  bool is_cell;        // the engine puts everything where it belongs all the same
};
void PrintTo(const HostileImage& image, std::ostream* out) { *out << image.name; }

class HostileImageTest : public DockerCellTest, public testing::WithParamInterface<HostileImage> {};

TEST_P(HostileImageTest, IsThePlannedCellOrNone) {
  const HostileImage& image = GetParam();
  MakeJobImage(Json::parse(image.config), Json::parse(image.files));
  auto made = Make(AgentPlan());
  if (!made.ok()) {
    EXPECT_FALSE(image.is_cell) << made.error().text;
    EXPECT_TRUE(
        made.error().code == "cell_mismatch" || made.error().code == "container_create_failed" ||
        made.error().code == "container_start_failed" || made.error().code == "container_refused")
        << made.error().code << ": " << made.error().text;
    EXPECT_TRUE(NoContainerIsLeft());
    return;
  }
  CellSession session(*made.value(), cell::Engine::kDocker);
  EXPECT_EQ(session.Differences().empty(), image.is_cell) << session.Described();
  if (image.is_cell) {
    auto end = session.Run({"/bin/actor", "cat", "/agent/SOUL.md"});
    EXPECT_EQ(end.exit.code, 0);
    EXPECT_EQ(session.out, "a soul\n");
  }
  EXPECT_TRUE(made.value()->Remove().ok());
}

INSTANTIATE_TEST_SUITE_P(
    Images, HostileImageTest,
    testing::Values(
        HostileImage{"Plain", R"({"/etc/passwd":{"text":"x"}})", "{}", true},
        HostileImage{"AgentIsALink", R"({"/agent":{"link":"/workspace"}})", "{}", false},
        HostileImage{"AgentIsALinkToTheRoot", R"({"/agent":{"link":"/"}})", "{}", false},
        // Docker takes links away where its own mounts go.
        HostileImage{"ProcIsALink", R"({"/proc":{"link":"/tmp"}})", "{}", true},
        HostileImage{"TmpIsALink", R"({"/tmp":{"link":"/agent"}})", "{}", false},
        HostileImage{"WorkspaceIsALink", R"({"/workspace":{"link":"/etc"}})", "{}", false},
        HostileImage{"WorkspaceIsALinkOutside", R"({"/workspace":{"link":"../../../../etc"}})",
                     "{}", false},
        HostileImage{"RunIsALink", R"({"/run":{"link":"/tmp"}})", "{}", false},
        HostileImage{"InitIsAFileOfTheImage", R"({"/run/taskcell/init":{"text":"#!/evil\n"}})",
                     "{}", true},
        HostileImage{"WorkspaceIsADirectoryOfTheImage", R"({"/workspace":{"dir":true}})", "{}",
                     true},
        HostileImage{"VolumeOnAnAncestor", "{}", R"({"Volumes":{"/run":{}}})", true},
        HostileImage{"VolumeOnThePlannedTargets", "{}",
                     R"({"Volumes":{"/agent":{},"/tmp":{},"/workspace":{}}})", true},
        HostileImage{"VolumeBelowTheAgentDirectory", "{}", R"({"Volumes":{"/agent/x":{}}})", false},
        HostileImage{"VolumeOnProc", "{}", R"({"Volumes":{"/proc":{}}})", false},
        HostileImage{"VolumeOnTheRoot", "{}", R"({"Volumes":{"/":{}}})", false},
        HostileImage{"AVariableWithoutAName", "{}", R"({"Env":["="]})", false},
        HostileImage{
            "Everything", "{}",
            R"({"Entrypoint":["/evil"],"Cmd":["x"],"User":"0:0","WorkingDir":"/proc/self/fd/7",
                         "Env":["LD_PRELOAD=/evil.so","HOSTNAME=evil","PATH"],
                         "Labels":{"com.duduclaw.task-sandbox.home":"forged"},
                         "Healthcheck":{"Test":["CMD","/evil"],"Interval":1000000},
                         "StopSignal":"SIGUSR1","Volumes":{"/data":{}},"OnBuild":["RUN evil"]})",
            true}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace taskcell::test
