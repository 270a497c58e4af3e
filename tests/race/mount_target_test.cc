// A mount target in a volume that somebody else may write to, who exchanges it for a symbolic link
// while a cell is made: the shape of CVE-2021-30465. A mount lands in the volume, under one of the
// target's names, or nowhere.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/native/cell_root.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/mount_id.h"
#include "tests/race/swapper.h"
#include "tests/support/fixture.h"
#include "tests/support/temp_directory.h"
#include "tests/support/wait_for.h"
#include "tests/support/without_openat2.h"

namespace taskcell::test {
namespace {

struct Exchanged {
  const char* name;
  const char* target;  // where the cell's mount goes
  const char* way;     // what of the volume is exchanged
  const char* link;    // where what it is exchanged with leads to; "@": the directory outside
  std::set<std::string> landing;  // where the mount may be seen to lie
};
void PrintTo(const Exchanged& exchanged, std::ostream* out) { *out << exchanged.name; }

class MountTargetRaceTest : public testing::TestWithParam<Exchanged>, protected TempDirectory {
 protected:
  MountTargetRaceTest() : TempDirectory("mount-target") {
    Put("volume/data/covered", "");
    Put("volume/a/data/covered", "");
    Put("outside/data/covered", "");
    Put("source/file", "good");
    for (const char* name : {"root/vol", "root/etc/data"})
      std::filesystem::create_directories(At(name));
    const std::string link = GetParam().link;
    Link(link == "@" ? At("outside") : link, "volume/link");
  }

  UniqueFd Clone(const std::string& name) const {
    UniqueFd directory = sys::Open(At(name), O_PATH | O_DIRECTORY).value();
    return sys::CloneMount(directory.get(), false).value();
  }

  // Where `tree` lies, as the mount table has it.
  static std::string MountPoint(int tree) {
    constexpr std::size_t kMost = 1U << 20U;
    const uint64_t id = sys::MountIdOf(tree).value();
    const std::string text = sys::ReadFile(AT_FDCWD, "/proc/self/mountinfo", kMost).value();
    const std::vector<MountInfoLine> lines = ParseMountInfo(text).value();
    for (const MountInfoLine& line : lines)
      if (line.id == id) return line.mount_point;
    return "nowhere";
  }

  // A root with the volume at /vol, in a mount namespace of its own.
  native::CellRoot MakeRoot() const {
    UniqueFd directory = Clone("root");
    native::CellRoot root =
        native::CellRoot::FromDirectory({"/", cell::EntryKind::kDirectory, std::move(directory)})
            .value();
    UniqueFd volume = Clone("volume");
    Status attached = root.Attach("/vol", cell::EntryKind::kDirectory, volume.get(), At("volume"));
    EXPECT_TRUE(attached.ok());
    return root;
  }

  // `attempt` over and over, which is refused for the link or else sees to it that what it did was
  // done in the volume; both must occur.
  void Try(int rounds, const std::function<Status(native::CellRoot&)>& attempt) const {
    native::CellRoot root = MakeRoot();
    int done = 0;
    int refused = 0;
    const test::Patience patience;
    auto is_one_sided = [&] { return done == 0 || refused == 0; };
    for (int round = 0; round < rounds || (is_one_sided() && patience.Lasts()); ++round) {
      Status attempted = attempt(root);
      ++(attempted.ok() ? done : refused);
      ASSERT_FALSE(HasFailure());
      ASSERT_TRUE(attempted.ok() || attempted.error().err == ELOOP ||
                  attempted.error().err == EAGAIN)
          << attempted.error().text;
    }
    EXPECT_GT(done, 0) << "control: both were met";
    EXPECT_GT(refused, 0) << "control: both were met";
  }

  // Beside somebody in another mount namespace: in this one, what is mounted on keeps its name.
  void Race(int rounds, const std::function<Status(native::CellRoot&)>& attempt) const {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
    Swapper swapper(Exchange(At(GetParam().way), At("volume/link")));
    int status = InChild([&] {
      if (::unshare(CLONE_NEWNS) != 0 || !sys::MakeAllMountsPrivate().ok()) return 2;
      Try(rounds, attempt);
      return HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(status, 0);
  }
};

TEST_P(MountTargetRaceTest, TheDirectoryThatIsOpenedIsInTheVolume) {
  const std::string directory = Text("volume", std::string(GetParam().target).substr(4));
  struct stat own = {};
  ASSERT_EQ(::stat(At(directory).c_str(), &own), 0);
  Race(RaceRounds(20'000), [&](native::CellRoot& root) -> Status {
    UniqueFd place = TRY(root.OpenTarget(GetParam().target, cell::EntryKind::kDirectory));
    EXPECT_EQ(sys::Stat(place.get()).value().st_ino, own.st_ino);
    return Ok();
  });
}

TEST_P(MountTargetRaceTest, AMountLandsInTheVolumeOrNowhere) {
  Race(RaceRounds(1'000), [&](native::CellRoot& root) -> Status {
    UniqueFd tree = Clone("source");
    TRY(root.Attach(GetParam().target, cell::EntryKind::kDirectory, tree.get()));
    EXPECT_THAT(GetParam().landing, testing::Contains(MountPoint(tree.get())));
    return sys::DetachMount(tree.get());
  });
}

INSTANTIATE_TEST_SUITE_P(
    Each, MountTargetRaceTest,
    testing::Values(
        Exchanged{"ALinkOutOfTheRoot", "/vol/data", "volume/data", "@", {"/vol/data", "/vol/link"}},
        Exchanged{"ALinkThatClimbs",
                  "/vol/data",
                  "volume/data",
                  "../../../../../../etc",
                  {"/vol/data", "/vol/link"}},
        Exchanged{
            "ALinkIntoTheRoot", "/vol/data", "volume/data", "/etc", {"/vol/data", "/vol/link"}},
        Exchanged{
            "ALinkAboveIt", "/vol/a/data", "volume/a", "@", {"/vol/a/data", "/vol/link/data"}},
        Exchanged{"ALinkIntoTheRootAboveIt",
                  "/vol/a/data",
                  "volume/a",
                  "/etc",
                  {"/vol/a/data", "/vol/link/data"}}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace taskcell::test
