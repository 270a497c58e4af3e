// Cells of a plan whose sources were opened once, as the gateway makes plans, while somebody
// exchanges those sources: the cell shows the very files of the plan, or there is none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "probe/cells/native_engine.h"
#include "tests/race/launches.h"
#include "tests/race/swapper.h"
#include "tests/support/as_test_user.h"
#include "tests/support/cell_session.h"
#include "tests/support/fixture.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

constexpr char kCanary[] = "the canary that no cell may see";

[[maybe_unused]] const auto* const kAsTestUser =
    testing::AddGlobalTestEnvironment(new AsTestUser({CELL_ACTOR_PATH}));  // NOLINT: gtest owns it

class PinnedRaceTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(!AsTestUser::directory().empty(),
                     "needs the user taskcell-test (tests/support/fixture.sh up)");
    TASKCELL_REQUIRE(::access(Program("taskcell-launch").c_str(), X_OK) == 0,
                     "needs taskcell-launch where the test user may run it");
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
    for (const char* name : {"top/source", "other/source", "trap"}) {
      for (const char* point : {"proc", "dev", "tmp", "workspace"})
        fs::create_directories(At(name) + "/" + point);
      fs::copy_file(AsTestUser::Copy("taskcell-cell-actor"), At(name) + "/actor");
      std::ofstream(At(name) + "/file") << kCanary;
    }
    std::ofstream(At("top/source/file")) << "good";
  }
  void TearDown() override {
    if (!path_.ends_with("XXXXXX")) fs::remove_all(path_);
  }
  std::string At(const std::string& name) const { return path_ + "/" + name; }

  // A plan made before anything was exchanged: top/source is the root, or is mounted at /data.
  cell::CellPlan Plan(bool as_root) {
    cell::CellPlan plan;
    plan.run_id = std::string(24, 'd') + Text(10000000 + ::getpid() % 1000000);
    plan.agent = "scout";
    probe::CellIds ids = engine_.ChooseIds(plan.run_id).value();
    plan.uid = ids.uid;
    plan.gid = ids.gid;
    plan.tmpfs = {{"/tmp", 8U << 20U, 01777, true, false},
                  {"/workspace", 8U << 20U, 0700, true, false}};
    plan.limits = {64U << 20U, 32, 500, 256};
    pin_ = UniqueFd(::open(At("top/source").c_str(), O_PATH | O_CLOEXEC));
    struct stat info = {};
    EXPECT_EQ(::fstat(pin_.get(), &info), 0);
    if (as_root) {
      plan.root = cell::RootKind::kRootfs;
      plan.root_source = At("top/source");
      plan.root_device = info.st_dev;
      plan.root_inode = info.st_ino;
    } else {
      plan.mounts = {{At("top/source"), "/data", cell::EntryKind::kDirectory, info.st_dev,
                      info.st_ino, false}};
    }
    return plan;
  }

  void Race(const std::function<void()>& swap, const cell::CellPlan& plan) {
    const std::string directory = plan.root == cell::RootKind::kRootfs ? "" : "/data";
    probe::CellPlaces places;
    places.launch_program = Program("taskcell-launch");
    const int launches = RaceLaunches();
    int good = 0;
    int refused = 0;
    Swapper swapper(swap);
    const Patience patience;
    auto is_one_sided = [&] { return good == 0 || refused == 0; };
    for (int launch = 0; launch < launches || (is_one_sided() && patience.Lasts()); ++launch) {
      auto made = engine_.Make(plan, places);
      if (!made.ok()) {
        ++refused;
        ASSERT_THAT(made.error().text, testing::AnyOf(testing::HasSubstr("it was replaced since"),
                                                      testing::HasSubstr("symbolic link"),
                                                      testing::HasSubstr("No such file")));
        continue;
      }
      ++good;
      CellSession session(*made.value(), cell::Engine::kNative);
      ASSERT_TRUE(session.Differences().empty()) << session.Described();
      auto end = session.Run({directory + "/actor", "cat", directory + "/file"});
      ASSERT_EQ(end.exit.code, 0) << session.err;
      ASSERT_EQ(session.out, "good");
      EXPECT_TRUE(session.host.Done().ok());
      EXPECT_TRUE(made.value()->Remove().ok());
    }
    EXPECT_GT(good, 0) << "control: both were met";
    EXPECT_GT(refused, 0) << "control: both were met";
  }

  probe::NativeEngine engine_;
  std::string path_ = "/tmp/taskcell-pinned-XXXXXX";
  UniqueFd pin_;
};

TEST_F(PinnedRaceTest, AMountIsTheDirectoryOfThePlanOrThereIsNoCell) {
  Race(Exchange(At("top/source"), At("trap")), Plan(false));
  Race(FlipToLink(At("top/source"), At("trap")), Plan(false));
}

TEST_F(PinnedRaceTest, AMountBelowAnExchangedDirectoryIsTheOneOfThePlanOrThereIsNoCell) {
  Race(Exchange(At("top"), At("other")), Plan(false));
  Race(FlipToLink(At("top"), At("other")), Plan(false));
}

TEST_F(PinnedRaceTest, ARootDirectoryIsTheOneOfThePlanOrThereIsNoCell) {
  Race(Exchange(At("top/source"), At("trap")), Plan(true));
  Race(FlipToLink(At("top"), At("other")), Plan(true));
}

}  // namespace
}  // namespace taskcell::test
