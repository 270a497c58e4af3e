// Cells that taskcell-launch makes for the gateway: the same interface, gate and comparison as with
// an engine, and nothing left whichever side ends first.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/cgroup/events.h"
#include "launcher/sys/file.h"
#include "probe/cells/native_engine.h"
#include "tests/support/as_test_user.h"
#include "tests/support/cell_session.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

using gate::JobOutcome;

[[maybe_unused]] const auto* const kAsTestUser =
    testing::AddGlobalTestEnvironment(new AsTestUser({CELL_ACTOR_PATH}));  // NOLINT: gtest owns it

class NativeCellTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(!AsTestUser::directory().empty(),
                     "needs the user taskcell-test (tests/support/fixture.sh up)");
    launch_ = Program("taskcell-launch");
    TASKCELL_REQUIRE(::access(launch_.c_str(), X_OK) == 0,
                     "needs taskcell-launch where the test user may run it (" + launch_ + ")");
    run_id_ = std::string(24, 'c') + Text(10000000 + ::getpid() % 1000000);
    tools_ = AsTestUser::directory() + "/tools";
    std::filesystem::create_directory(tools_);
    std::filesystem::copy_file(AsTestUser::Copy("taskcell-cell-actor"), tools_ + "/actor");
    pin_ = UniqueFd(::open(tools_.c_str(), O_PATH | O_CLOEXEC));
  }

  void TearDown() override {
    if (!tools_.empty()) std::filesystem::remove_all(tools_);
  }

  cell::CellPlan Plan() {
    cell::CellPlan plan;
    plan.run_id = run_id_;
    plan.agent = "scout";
    plan.home_label = std::string(32, 'b');
    auto ids = engine_.ChooseIds(run_id_);
    EXPECT_TRUE(ids.ok()) << ids.error().text;
    plan.uid = ids->uid;
    plan.gid = ids->gid;
    struct stat status;
    EXPECT_EQ(::fstat(pin_.get(), &status), 0);
    plan.mounts = {
        {tools_, "/tools", cell::EntryKind::kDirectory, status.st_dev, status.st_ino, false}};
    plan.tmpfs = {{"/tmp", 8U << 20U, 01777, true, false},
                  {"/workspace", 16U << 20U, 0700, true, false}};
    plan.limits = {64U << 20U, 32, 500, 256};
    plan.network = cell::NetworkMode::kNone;
    return plan;
  }

  Result<std::unique_ptr<probe::RunningCell>> Make(cell::CellPlan plan) {
    probe::CellPlaces places;
    places.launch_program = launch_;
    return engine_.Make(std::move(plan), places);
  }

  probe::NativeEngine engine_;
  std::string launch_;
  std::string run_id_;
  std::string tools_;
  UniqueFd pin_;
};

TEST_F(NativeCellTest, ACellIsExactlyWhatWasPlannedAndRunsItsJob) {
  auto made = Make(Plan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kNative);
  EXPECT_TRUE(session.Differences().empty()) << session.Described();
  EXPECT_EQ(session.seen.outside.limits.memory_bytes, 64U << 20U);
  EXPECT_EQ(session.seen.outside.limits.pids, 32U);
  auto end = session.Run({"/tools/actor", "cat", "/etc/hostname"});
  EXPECT_EQ(end.outcome, JobOutcome::kExited);
  auto write = made.value()->ReadEvents();
  ASSERT_TRUE(write.ok()) << write.error().text;
  EXPECT_TRUE(session.host.Done().ok());
  EXPECT_TRUE(made.value()->Remove().ok());
  EXPECT_TRUE(made.value()->Remove().ok());
}

TEST_F(NativeCellTest, AJobsOutputAndStatusComeBack) {
  auto made = Make(Plan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kNative);
  EXPECT_TRUE(session.Differences().empty()) << session.Described();
  auto end = session.Run({"/bin/sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(end.outcome, JobOutcome::kExited);
  EXPECT_EQ(end.exit.code, 7);
  EXPECT_EQ(session.out, "out\n");
  EXPECT_EQ(session.err, "err\n");
  EXPECT_TRUE(made.value()->Remove().ok());
}

TEST_F(NativeCellTest, AKernelIdOfItsOwnWhereThereIsOne) {
  auto ids = engine_.ChooseIds(run_id_);
  ASSERT_TRUE(ids.ok());
  auto made = Make(Plan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  auto outside = made.value()->Observe();
  ASSERT_TRUE(outside.ok());
  EXPECT_EQ(outside->host_uids[0] != ::geteuid(), ids->separate) << ids->how;
}

TEST_F(NativeCellTest, KillEndsACellWhoseJobRuns) {
  auto made = Make(Plan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kNative);
  EXPECT_TRUE(session.Differences().empty()) << session.Described();
  cell::Job job;
  job.argv = {"/bin/sleep", "60"};
  job.stdio = cell::JobStdio::kRelay;
  ASSERT_TRUE(
      session.host.HandOver(job, gate::GateHost::Clock::now() + std::chrono::seconds(5)).ok());
  EXPECT_TRUE(made.value()->Kill().ok());
  auto end = session.host.Pump(session, gate::GateHost::Clock::now() + std::chrono::seconds(5));
  ASSERT_TRUE(end.ok()) << end.error().text;
  EXPECT_EQ(end->outcome, JobOutcome::kGateClosed);
  EXPECT_TRUE(made.value()->Remove().ok());
}

// A launcher that ends when asked, and one that is deaf.
TEST_F(NativeCellTest, ACellNobodyWantsAnyMoreIsNotWaitedFor) {
  for (const char* script : {"exec sleep 60", "trap '' TERM; sleep 60 & wait; wait"}) {
    launch_ = tools_ + "/slow";
    std::ofstream(launch_) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(launch_, std::filesystem::perms::owner_all);
    sys::Pipe stop = sys::MakePipe().value();
    engine_.CancelOn(stop.read_end.get());
    const auto begun = std::chrono::steady_clock::now();
    std::thread canceller([&stop] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      stop.write_end.Reset();
    });
    auto made = Make(Plan());
    canceller.join();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, "stopped") << made.error().text;
    EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(200));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(6));
  }
}

TEST_F(NativeCellTest, TheDestructorLeavesNothing) {
  auto made = Make(Plan());
  ASSERT_TRUE(made.ok()) << made.error().text;
}

TEST_F(NativeCellTest, AnImageIsRefused) {
  auto image = engine_.CheckImage("x:1");
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().code, "image_missing");
}

TEST_F(NativeCellTest, APlanNoCellCouldHonourIsRefusedBeforeAnythingStarts) {
  cell::CellPlan plan = Plan();
  plan.limits.pids = 0;
  auto made = Make(std::move(plan));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, "container_refused");
}

TEST_F(NativeCellTest, ASourceThatChangedSinceThePlanIsAFailureWithItsName) {
  cell::CellPlan plan = Plan();
  plan.mounts[0].inode += 1;
  auto made = Make(std::move(plan));
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().text.find(tools_), std::string::npos) << made.error().text;
}

TEST_F(NativeCellTest, ALauncherThatIsNotThereIsNamed) {
  launch_ = "/nonexistent/taskcell-launch";
  auto made = Make(Plan());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, "container_create_failed");
  EXPECT_NE(made.error().text.find(launch_), std::string::npos);
}

TEST_F(NativeCellTest, AProgramThatIsNoLauncherIsLeftWithItsWords) {
  launch_ = "/bin/true";
  auto made = Make(Plan());
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().text.find("ended without a report"), std::string::npos)
      << made.error().text;
}

}  // namespace
}  // namespace taskcell::test
