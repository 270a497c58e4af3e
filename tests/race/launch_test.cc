// Whole launches of taskcell-launch whose sources somebody exchanges all the time. What is
// exchanged in could never be mounted if it was looked at, so whatever of it appears in a cell came
// in between the look and the mount.
#include "tests/support/launch.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "tests/race/launches.h"
#include "tests/race/swapper.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kCanary[] = "the canary that no cell may see";

class LaunchRaceTest : public LaunchTest {
 protected:
  // Launches over and over beside `swap`. A launch either prints what `is_good` takes, or is
  // refused with one of `refusals` in its message; both must occur.
  void Race(const std::function<void()>& swap, const std::vector<std::string>& arguments,
            const std::function<bool(const Outcome&)>& is_good,
            const std::vector<std::string>& refusals) {
    Swapper swapper(swap);
    LaunchOverAndOver(arguments, is_good, refusals);
  }

  void LaunchOverAndOver(const std::vector<std::string>& arguments,
                         const std::function<bool(const Outcome&)>& is_good,
                         const std::vector<std::string>& refusals) {
    const int launches = RaceLaunches();
    int good = 0;
    int other = 0;
    const Patience patience;
    auto is_one_sided = [&] { return good == 0 || other == 0; };
    for (int launch = 0; launch < launches || (is_one_sided() && patience.Lasts()); ++launch) {
      Outcome ran = Launch(arguments);
      ASSERT_THAT(ran.out + ran.err, Not(HasSubstr(kCanary)));
      bool refused = ran.status == 125 && ran.out.empty() &&
                     std::any_of(refusals.begin(), refusals.end(), [&](const auto& refusal) {
                       return ran.err.find(refusal) != std::string::npos;
                     });
      ASSERT_TRUE(is_good(ran) || refused) << ran.status << ": " << ran.out << ran.err;
      ++(refused || ran.out.empty() ? other : good);
    }
    EXPECT_GT(good, 0) << "control: both were met";
    EXPECT_GT(other, 0) << "control: both were met";
  }

  static bool PrintsGood(const Outcome& ran) { return ran.status == 0 && ran.out == "good"; }

  // The same, or what was mounted has another name by now.
  static bool PrintsGoodOrFindsNothing(const Outcome& ran) {
    return PrintsGood(ran) || (ran.out.empty() && ran.status == 1 &&
                               ran.err.find("No such file") != std::string::npos);
  }

  // A directory that must not be mounted, with the canary in it.
  void MakeTrap(const std::string& name) const {
    MakeFile(name + "/file", kCanary);
    ASSERT_EQ(::mkfifo((scratch_ + "/" + name + "/pipe").c_str(), 0666), 0);
  }
  std::string At(const std::string& name) const { return scratch_ + "/" + name; }
};

const std::vector<std::string> kNotTheSame = {"is a FIFO", "replaced since", "symbolic link",
                                              "No such file", "was changed while"};

TEST_F(LaunchRaceTest, AnExchangedSourceIsTheOneThatWasCheckedOrNone) {
  MakeFile("top/data/file", "good");
  MakeTrap("trap");
  MakeTrap("other/data");
  const std::vector<std::string> arguments = {"--ro=" + At("top/data") + ":/data", "--", "/bin/cat",
                                              "/data/file"};
  Race(Exchange(At("top/data"), At("trap")), arguments, PrintsGood, kNotTheSame);
  Race(Exchange(At("top"), At("other")), arguments, PrintsGood, kNotTheSame);
}

TEST_F(LaunchRaceTest, ASourceThatIsALinkFromTimeToTimeIsTheOneThatWasCheckedOrNone) {
  MakeFile("top/data/file", "good");
  MakeTrap("trap/data");
  const std::vector<std::string> arguments = {"--ro=" + At("top/data") + ":/data", "--", "/bin/cat",
                                              "/data/file"};
  Race(FlipToLink(At("top/data"), At("trap/data")), arguments, PrintsGood, kNotTheSame);
  Race(FlipToLink(At("top"), At("trap")), arguments, PrintsGood, kNotTheSame);
}

TEST_F(LaunchRaceTest, AFileSourceIsNeverWhatALinkLedTo) {
  MakeFile("top/file", "good");
  fs::create_directories(At("trap"));
  ASSERT_EQ(::mkfifo(At("trap/file").c_str(), 0666), 0);
  Race(Exchange(At("top/file"), At("trap/file")),
       {"--ro=" + At("top/file") + ":/file", "--", "/bin/cat", "/file"}, PrintsGood, kNotTheSame);
}

TEST_F(LaunchRaceTest, AnAgentDirectoryShowsOnlyWhatIsItsOwn) {
  MakeFile("agent/SOUL.md", "good");
  MakeFile("agent/wiki/page", "good");
  MakeFile("outside/page", kCanary);
  MakeFile("key", kCanary);
  auto arguments = [this](const char* file) {
    return std::vector<std::string>{"--agent-dir=" + At("agent"), "--", "/bin/cat", file};
  };
  Race(FlipToLink(At("agent/SOUL.md"), At("key")), arguments("/agent/SOUL.md"),
       PrintsGoodOrFindsNothing, {});
  Race(FlipToLink(At("agent/wiki"), At("outside")), arguments("/agent/wiki/page"),
       PrintsGoodOrFindsNothing, {});
}

// The mount points of a root directory are looked up in it while it may be written. What was
// mounted on a directory that is then called otherwise is seen by the attestation.
TEST_F(LaunchRaceTest, AMountPointThatIsALinkFromTimeToTimeRedirectsNothing) {
  std::string rootfs = MakeRootfs();
  MakeFile("outside/file", kCanary);
  fs::create_directories(At("agent"));
  auto written = fs::last_write_time(At("outside"));
  for (const char* target : {"agent", "workspace", "proc"}) {
    // A launch meets the mount point several times: flipped all the time, none would succeed.
    Race(FlipToLink(rootfs + "/" + target, "../outside", 1000, 20'000),
         {"--rootfs=" + rootfs, "--agent-dir=" + At("agent"), "--", "/launch", "--version"},
         [](const Outcome& ran) { return ran.status == 0; }, {"taskcell-launch: "});
  }
  EXPECT_EQ(fs::last_write_time(At("outside")), written);
}

// The shape of CVE-2021-30465: one cell exchanges a directory of a volume for a link, while others
// are made that have a mount there. They have the mount in the volume, or there is no such cell.
class SharedVolumeRaceTest : public LaunchRaceTest,
                             public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    LaunchRaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    MakeFile("source/file", "good");
    MakeFile("outside/file", kCanary);
    for (const char* directory : {"volume", "volume/data"}) {
      fs::create_directory(At(directory));
      ASSERT_EQ(::chown(At(directory).c_str(), user_->uid, user_->gid), 0);
    }
    const std::string link = GetParam();
    fs::create_symlink(link == "@" ? At("outside") : link, At("volume/link"));
    ASSERT_EQ(::lchown(At("volume/link").c_str(), user_->uid, user_->gid), 0);
  }

  // Until there is a file "stop" in the volume.
  Outcome ExchangeInACell() const {
    RunOptions options;
    options.timeout_ms = 3'600'000;  // as long as the others need
    return Launch(
        {"--bind-rw=" + At("volume") + ":/vol", "--", "/usr/bin/python3", "-c",
         "import ctypes, os, time\n"
         "libc = ctypes.CDLL(None)\n"
         "open('/vol/started', 'w').close()\n"
         "while not os.path.exists('/vol/stop'):\n"
         "  for _ in range(64):\n"
         "    if libc.renameat2(-100, b'/vol/data', -100, b'/vol/link', 2) != 0: exit(3)\n"
         "  time.sleep(0.0003)\n"},
        options);
  }
};

TEST_P(SharedVolumeRaceTest, CVE_2021_30465_AMountIsInTheVolumeOrThereIsNoCell) {
  Outcome exchanged;
  std::thread other_cell([&] { exchanged = ExchangeInACell(); });
  EXPECT_TRUE(WaitFor([&] { return fs::exists(At("volume/started")); }));
  LaunchOverAndOver({"--bind-rw=" + At("volume") + ":/vol", "--ro=" + At("source") + ":/vol/data",
                     "--", "/bin/cat", "/vol/data/file"},
                    PrintsGoodOrFindsNothing,
                    {"symbolic link", "was changed while", "cell_mismatch"});
  MakeFile("volume/stop", "");
  other_cell.join();
  EXPECT_EQ(exchanged.status, 0) << exchanged.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(At("outside")), {}), 1);
}

INSTANTIATE_TEST_SUITE_P(Links, SharedVolumeRaceTest,
                         testing::Values("@", "/etc", "../../../../../../proc"),
                         [](const auto& row) {
                           const std::string link = row.param;
                           return link == "@"      ? "OutOfTheRoot"
                                  : link == "/etc" ? "IntoTheRoot"
                                                   : "ThatClimbs";
                         });

}  // namespace
}  // namespace taskcell::test
