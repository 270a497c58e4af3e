// Where change times do not tell that nothing was changed, nothing rests on them.
#include "launcher/mounts/settled.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/mounts/stored_snapshot.h"
#include "launcher/sys/inode_time.h"
#include "tests/support/fixture.h"
#include "tests/support/folding_files.h"
#include "tests/support/hung_files.h"
#include "tests/unit/launcher/mounts/snapshot_fixture.h"

namespace taskcell::mounts {
namespace {

constexpr int kCannot = 77;

TEST(SettledTest, OnlyATimeWithoutNanosecondsMayHaveBeenCutAndThenByTwoSeconds) {
  EXPECT_TRUE(MayBeCut({1000, 0}));
  EXPECT_FALSE(MayBeCut({1000, 1}));
  EXPECT_EQ(LatestOf({1000, 0}).tv_sec, 1002);
  EXPECT_EQ(LatestOf({1000, 0}).tv_nsec, 0);
  EXPECT_EQ(LatestOf({1000, 1}).tv_sec, 1000);
  EXPECT_EQ(LatestOf({1000, 1}).tv_nsec, 1);
}

class TimesTest : public SnapshotTest {
 protected:
  TimesTest() {
    fs::create_directories(At("store"));
    EXPECT_EQ(::chmod(At("store").c_str(), 0700), 0);
  }

  // Puts a disk whose file system keeps whole seconds in the place of `agent`, in own mounts.
  bool MountWholeSeconds() const {
    return test::EnterOwnMounts() &&
           test::Run({"/bin/sh", "-c",
                      "PATH=$PATH:/usr/sbin:/sbin; truncate -s 8M \"$0\"/disk &&"
                      " mkfs.ext4 -q -F -I 128 \"$0\"/disk && mount -o loop \"$0\"/disk \"$1\"",
                      path(), agent()})
                   .status == 0;
  }

  // Takes a snapshot twice: whether the first was used again.
  bool IsKept() const {
    UniqueFd store = sys::Open(At("store"), O_RDONLY | O_DIRECTORY).value();
    UniqueFd from = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
    SnapshotBounds bounds;
    bounds.longest_write_s = 0;  // not because there are no leases
    auto take = [&] {
      return StoredSnapshot::Take({store.get(), At("store")}, from.get(), Subtree::kPrune, bounds)
          .value();
    };
    EXPECT_TRUE(take().Release(true).ok());
    StoredSnapshot again = take();
    const bool is_kept = again.is_reused();
    EXPECT_TRUE(again.Release(false).ok());
    return is_kept;
  }

  bool WasCopied(const std::string& name) const { return fs::exists(target() + "/" + name); }
};

TEST_F(TimesTest, WhereTimesAreWholeSecondsNoSetOfLinksIsTakenForClosed) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  const int status = test::InChild([this] {
    if (!MountWholeSeconds()) return kCannot;
    Put("agent/wiki/plain", "plain");
    Put("agent/wiki/page", "page");
    HardLink("agent/wiki/page", "agent/wiki/again");
    ::usleep(150'000);
    const Snapshot snapshot = Run().value();
    EXPECT_TRUE(WasCopied("wiki/plain"));
    EXPECT_FALSE(WasCopied("wiki/page") || WasCopied("wiki/again"));
    EXPECT_EQ(snapshot.warnings.size(), 2U);
    for (const std::string& warning : snapshot.warnings)
      EXPECT_NE(warning.find("hardlink"), std::string::npos) << warning;
    return HasFailure() ? 1 : 0;
  });
  TASKCELL_REQUIRE(status != kCannot, "needs mkfs.ext4 and a loop device");
  EXPECT_EQ(status, 0);
}

TEST_F(TimesTest, WhereTimesAreWholeSecondsACopyIsKeptTwoSecondsLater) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  const int status = test::InChild([this] {
    if (!MountWholeSeconds()) return kCannot;
    constexpr int kTries = 10;  // each but the last in less than a second, or it proves nothing
    for (int tries = 0; tries < kTries; ++tries) {
      Put("agent/SOUL.md", std::to_string(tries));
      struct stat info = {};
      if (::stat((agent() + "/SOUL.md").c_str(), &info) != 0 || !MayBeCut(info.st_ctim)) return 1;
      ::usleep(150'000);
      const bool is_kept = IsKept();
      if (sys::InodeClock().tv_sec - info.st_ctim.tv_sec > 1) continue;
      if (is_kept) return 2;
      ::usleep(2'300'000);
      return IsKept() ? 0 : 3;
    }
    return 4;
  });
  TASKCELL_REQUIRE(status != kCannot, "needs mkfs.ext4 and a loop device");
  EXPECT_EQ(status, 0);
}

TEST_F(TimesTest, TheTimesOfAProcessAreBelievedInNothing) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  EXPECT_EQ(test::InChild([this] {
              if (!test::EnterOwnMounts()) return 90;
              const test::FoldingFiles served(agent());
              if (!served.mounted()) return 91;
              UniqueFd top = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
              EXPECT_TRUE(HasForeignTimes(top.get()));
              EXPECT_EQ(Get(agent() + "/wiki/one"), "linked") << "control";
              const Snapshot snapshot = Run().value();
              EXPECT_TRUE(WasCopied("wiki"));
              EXPECT_FALSE(WasCopied("wiki/one") || WasCopied("wiki/two"));
              EXPECT_FALSE(IsKept());
              return HasFailure() ? 1 : 0;
            }),
            0);
  UniqueFd own = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
  EXPECT_FALSE(HasForeignTimes(own.get())) << "control";
}

}  // namespace
}  // namespace taskcell::mounts
