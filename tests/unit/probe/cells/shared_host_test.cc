#include "probe/cells/shared_host.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "tests/support/fake_engine.h"

namespace taskcell::probe {
namespace {

std::vector<MountInfoLine> Mounts(const std::string& text) { return ParseMountInfo(text).value(); }

// A host, and containers that have a part of it.
constexpr char kHost[] =
    "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "22 21 0:5 / /proc rw - proc proc rw\n"
    "30 21 8:2 / /srv rw - xfs /dev/sda2 rw\n"
    "31 30 0:40 / /srv/tmp rw - tmpfs tmpfs rw\n";
constexpr char kShared[] =
    "900 700 0:99 / / rw - overlay overlay rw\n"
    "901 900 8:2 /home /srv/home rw - xfs /dev/sda2 rw\n"
    "902 900 8:1 /usr/libexec /usr/libexec ro - ext4 /dev/sda1 rw\n";
constexpr char kElsewhere[] =
    "900 700 0:99 / / rw - overlay overlay rw\n"
    "901 900 8:2 /other /srv/home rw - xfs /dev/sda2 rw\n";
constexpr char kCovered[] =
    "900 700 0:99 / / rw - overlay overlay rw\n"
    "901 900 8:2 /home /srv/home rw - xfs /dev/sda2 rw\n"
    "902 900 0:50 / /srv rw - tmpfs tmpfs rw\n"
    "903 901 0:51 / /srv/home rw - tmpfs tmpfs rw\n";

TEST(FindPlaceTest, ThePlaceIsThatInTheFileSystemWhateverIsMountedWhere) {
  EXPECT_EQ(FindPlace(Mounts(kHost), "/srv/home/x"), (PlaceOnDisk{8, 2, "/home/x"}));
  EXPECT_EQ(FindPlace(Mounts(kShared), "/srv/home/x"), (PlaceOnDisk{8, 2, "/home/x"}));
  EXPECT_EQ(FindPlace(Mounts(kShared), "/srv/home"), (PlaceOnDisk{8, 2, "/home"}));
  EXPECT_EQ(FindPlace(Mounts(kHost), "/usr/libexec/taskcell/taskcell-init"),
            FindPlace(Mounts(kShared), "/usr/libexec/taskcell/taskcell-init"));
  EXPECT_EQ(FindPlace(Mounts(kHost), "/srv"), (PlaceOnDisk{8, 2, ""}));
  EXPECT_EQ(FindPlace(Mounts(kHost), "/"), (PlaceOnDisk{8, 1, ""}));
  EXPECT_EQ(FindPlace(Mounts(kHost), "/srv/tmpfile"), (PlaceOnDisk{8, 2, "/tmpfile"}));
}

TEST(FindPlaceTest, AnotherDirectoryAndOneThatIsNotMappedAreOtherPlaces) {
  const auto home = FindPlace(Mounts(kHost), "/srv/home");
  EXPECT_NE(FindPlace(Mounts(kElsewhere), "/srv/home"), home);
  EXPECT_NE(FindPlace(Mounts("900 700 0:99 / / rw - overlay overlay rw\n"), "/srv/home"), home);
}

TEST(FindPlaceTest, WhatLiesHiddenBelowAnotherMountIsNotThere) {
  EXPECT_EQ(FindPlace(Mounts(kCovered), "/srv/home"), (PlaceOnDisk{0, 50, "/home"}));
}

TEST(FindPlaceTest, MountsWithoutARootMakeNoSense) {
  EXPECT_EQ(FindPlace({}, "/srv"), std::nullopt);
  EXPECT_EQ(FindPlace(Mounts("30 21 8:2 / /srv rw - xfs /dev/sda2 rw\n"), "/srv"), std::nullopt);
}

// The other end is this very process, or one of the same host.
TEST(SharedHostTest, AnEngineBesideThisProcessSharesEverything) {
  test::FakeEngine engine([](const auto&) { return test::FakeEngine::Answer(200, ""); });
  const Status shared =
      CheckSharedHost({engine.socket_path(), "a test", {}}, {"/", "/tmp", "/usr"});
  EXPECT_TRUE(shared.ok()) << (shared.ok() ? "" : shared.error().text);
}

}  // namespace
}  // namespace taskcell::probe
