// What Docker makes, up to the gate: a cell whose first process is not what it should be, or does
// not behave, becomes no running cell and leaves nothing behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/cgroup/events.h"
#include "launcher/gate/gate_host.h"
#include "launcher/sys/socket.h"
#include "tests/engine/docker_fixture.h"
#include "tests/support/engine_proxy.h"

namespace taskcell::test {
namespace {

using gate::GateHost;
using Json = nlohmann::json;
using std::chrono::milliseconds;

class DockerGateTest : public DockerTest {
 protected:
  void ExpectFailure(const Result<std::unique_ptr<probe::RunningCell>>& made, std::string_view code,
                     const std::string& text) {
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, code) << made.error().text;
    EXPECT_NE(made.error().text.find(text), std::string::npos) << made.error().text;
    EXPECT_EQ(made.error().text.find("left behind"), std::string::npos) << made.error().text;
  }
};

TEST_F(DockerGateTest, TheEngineIsReachableAndSaysWhatItIs) {
  EXPECT_TRUE(Engine().CheckReachable().ok());
  EXPECT_FALSE(engine_->NeedsLimitsProbe());
  EXPECT_NE(engine_->Name().find("unix://" + socket_ + " (from a test)"), std::string::npos);
  EXPECT_FALSE(engine_->info().server_version.empty());
}

TEST_F(DockerGateTest, AnImageThatIsNotThereNamesThePullCommand) {
  auto image = Engine().CheckImage("reg.example/none:1");
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().code, "image_missing");
  EXPECT_NE(image.error().text.find("docker pull reg.example/none:1"), std::string::npos);
}

TEST_F(DockerGateTest, AFirstProcessThatConnectsOnceIsACell) {
  MakeImage("once");
  auto made = Make();
  ASSERT_TRUE(made.ok()) << made.error().text;
  probe::RunningCell& cell = *made.value();
  EXPECT_GT(cell.host_pid(), 0);
  EXPECT_EQ(ContainersLeft(), 1U);
  auto outside = cell.Observe();
  ASSERT_TRUE(outside.ok()) << outside.error().text;
  EXPECT_EQ(outside->host_uids[0], 2000000007U);
  EXPECT_EQ(outside->limits.memory_bytes, 64U << 20U);
  EXPECT_EQ(outside->limits.pids, 32U);
  auto events = cell.ReadEvents();
  ASSERT_TRUE(events.ok()) << events.error().text;
  EXPECT_EQ(events->oom_kills, 0U);
  EXPECT_TRUE(cell.TakeGate().valid());
  EXPECT_EQ(::access((run_directory_ + "/gate.d/gate").c_str(), F_OK), -1)
      << "nobody may connect a second time";
  EXPECT_TRUE(cell.Kill().ok());
  EXPECT_TRUE(cell.Kill().ok());
  EXPECT_TRUE(cell.Remove().ok());
  EXPECT_TRUE(cell.Remove().ok());
}

TEST_F(DockerGateTest, TheDestructorKillsAndRemoves) {
  MakeImage("once");
  auto made = Make();
  ASSERT_TRUE(made.ok()) << made.error().text;
  made.value().reset();
  EXPECT_TRUE(NoContainerIsLeft());
}

TEST_F(DockerGateTest, TwoConnectionsAreAMismatch) {
  MakeImage("twice");
  ExpectFailure(Make(), "cell_mismatch", "second connection");
}

TEST_F(DockerGateTest, AConnectionOfAnotherProcessIsAMismatch) {
  MakeImage("child");
  ExpectFailure(Make(), "cell_mismatch", "not the cell's first process");
}

TEST_F(DockerGateTest, AFirstProcessThatEndsIsAMismatch) {
  MakeImage("die");
  ExpectFailure(Make(), "cell_mismatch", "ended before it");
}

TEST_F(DockerGateTest, AFirstProcessThatConnectsAndEndsIsAMismatch) {
  MakeImage("connect-die");
  auto made = Make();
  if (!made.ok()) return ExpectFailure(made, "cell_mismatch", "ended");
  // It was looked at while it still lived; then it says nothing.
  auto host = GateHost::Open(made.value()->TakeGate());
  ASSERT_TRUE(host.ok());
  auto arrival = host->Attest(true, GateHost::Clock::now() + milliseconds(5000));
  ASSERT_FALSE(arrival.ok());
  EXPECT_EQ(arrival.error().code, "cell_mismatch") << arrival.error().text;
  EXPECT_TRUE(made.value()->Remove().ok());
}

TEST_F(DockerGateTest, AFirstProcessThatNeverConnectsIsAMismatchAfterTheTimeLimit) {
  MakeImage("never");
  auto before = std::chrono::steady_clock::now();
  ExpectFailure(Make(), "cell_mismatch", "did not connect in time");
  EXPECT_GE(std::chrono::steady_clock::now() - before, probe::kGateTimeout - milliseconds(100));
}

TEST_F(DockerGateTest, FramesThatBreakTheRulesAreViolationsAndTheCellGoes) {
  struct Row {
    const char* behaviour;
    const char* text;
  };
  for (const Row& row : {Row{"oversized", "65536"}, Row{"order", "gate: "},
                         Row{"early", "where the attestation was due"}, Row{"half", "went away"}}) {
    MakeImage(row.behaviour);
    cell::CellPlan plan = Plan();
    plan.network = cell::NetworkMode::kNone;
    auto made = Make(std::move(plan));
    ASSERT_TRUE(made.ok()) << row.behaviour << ": " << made.error().text;
    auto host = GateHost::Open(made.value()->TakeGate());
    ASSERT_TRUE(host.ok());
    auto arrival = host->Attest(false, GateHost::Clock::now() + milliseconds(5000));
    ASSERT_FALSE(arrival.ok()) << row.behaviour;
    EXPECT_EQ(arrival.error().code, "cell_mismatch") << row.behaviour;
    EXPECT_NE(arrival.error().text.find(row.text), std::string::npos) << arrival.error().text;
    EXPECT_TRUE(made.value()->Remove().ok());
  }
}

TEST_F(DockerGateTest, AnInitThatIsNotThereIsNamedBeforeAnythingIsMade) {
  MakeImage("once");
  init_ = "/nonexistent/taskcell-init";
  ExpectFailure(Make(), "workspace_failed", "/nonexistent/taskcell-init");
}

TEST_F(DockerGateTest, ANameThatIsTakenIsNotRemoved) {
  MakeImage("once");
  auto first = Make();
  ASSERT_TRUE(first.ok()) << first.error().text;
  // The same run id once more, from another run directory.
  ASSERT_EQ(::rmdir(run_directory_.c_str()), -1) << "control: the gate directory is there";
  std::string second_directory = sandbox_ + "/second";
  ASSERT_EQ(::mkdir(second_directory.c_str(), 0700), 0);
  std::string kept = run_directory_;
  run_directory_ = second_directory;
  auto second = Engine().Make(Plan(), Places());
  run_directory_ = kept;
  ExpectFailure(second, "container_create_failed", "Conflict");
  EXPECT_EQ(::rmdir(second_directory.c_str()), 0);
  // Both carry this run's label, so the one who lost may have removed the winner: it must not.
  EXPECT_EQ(ContainersLeft(), 1U);
  EXPECT_TRUE(first.value()->Remove().ok());
}

TEST_F(DockerGateTest, AContainerWhoseCreationWasNotAnsweredIsFoundAndRemoved) {
  MakeImage("once");
  int creations = 0;
  FakeEngine proxy([&](const FakeEngine::Request& request) {
    std::string answer = ForwardToEngine(socket_, request);
    if (request.target.find("/containers/create") == std::string::npos) return answer;
    ++creations;
    EXPECT_EQ(ContainersLeft(), 1U) << "control: the engine did make it";
    return answer.substr(0, 20);
  });
  EngineAt(proxy.socket_path());
  ExpectFailure(Make(), "docker_unreachable", "cut off");
  EXPECT_EQ(creations, 1);
}

TEST_F(DockerGateTest, ImagesWithHostileConfigurationChangeNothing) {
  MakeImage(
      "once", Json::object(),
      {{"Entrypoint", {"/evil"}},
       {"Cmd", {"evil"}},
       {"User", "0:0"},
       {"WorkingDir", "/evil"},
       {"Env", {"LD_PRELOAD=/evil.so", "BASH_ENV=/evil.sh", "PATH=/evil"}},
       {"Volumes",
        {{"/data", Json::object()}, {"/workspace", Json::object()}, {"/run", Json::object()}}},
       {"Labels",
        {{"com.duduclaw.task-sandbox.run", "forged"},
         {"com.duduclaw.task-sandbox.home", "forged"}}},
       {"Healthcheck", {{"Test", {"CMD", "/evil"}}, {"Interval", 1000000000}}},
       {"StopSignal", "SIGUSR1"}});
  auto image = Engine().CheckImage(image_);
  ASSERT_TRUE(image.ok()) << image.error().text;
  EXPECT_EQ(image->volumes.size(), 3U);
  auto made = Make();
  ASSERT_TRUE(made.ok()) << made.error().text;
  EXPECT_EQ(ContainersLeft(), 1U) << "found by our home label, not the image's";
  // The engine's own record of the container: control that the hostile image was the one used.
  probe::HttpClient client(probe::Endpoint{socket_, "a test", {}});
  auto answer = client.Call({"GET", "/containers/dudu-task-" + run_id_ + "/json", {}});
  ASSERT_TRUE(answer.ok());
  Json record = Json::parse(answer->body);
  const Json& config = record["Config"];
  EXPECT_EQ(config["Healthcheck"]["Test"], Json::parse(R"(["NONE"])"));
  EXPECT_EQ(config["StopSignal"], "SIGKILL");
  EXPECT_EQ(config["User"], "2000000007:2000000007");
  EXPECT_EQ(config["Labels"]["com.duduclaw.task-sandbox.run"], run_id_);
  EXPECT_EQ(record["Path"], "/run/taskcell/init");
  for (const Json& mount : record["Mounts"]) EXPECT_NE(mount["Type"], "volume") << mount.dump();
  EXPECT_FALSE(record["State"].contains("Health"));
  EXPECT_TRUE(made.value()->Remove().ok());
}

}  // namespace
}  // namespace taskcell::test
