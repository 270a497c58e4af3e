// The shape of CVE-2025-52565: a root directory's /dev, where a runtime binds the terminal on
// /dev/console or looks for it in /dev/pts, is exchanged all the time while cells with --tty are
// made from it. A cell has its own terminal and nothing else there, or there is no such cell.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>

#include "launcher/base/text.h"
#include "tests/race/launches.h"
#include "tests/race/swapper.h"
#include "tests/support/launch.h"
#include "tests/support/on_terminal.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kCanary[] = "the canary that no cell may see";
// Whatever a root has in its /dev, or a runtime may put there.
constexpr const char* kNames[] = {"console", "ptmx", "tty", "null", "fd", "stdin"};

class TerminalRaceTest : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    rootfs_ = MakeRootfs();
    fs::create_directory(rootfs_ + "/usr");
    for (const char* name : {"bin", "lib", "lib64"})
      fs::create_symlink(Text("usr/", name), rootfs_ + "/" + name);
    for (const char* name : {"0", "1", "ptmx", "console", "tty", "null"})
      MakeFile(Text("canary/", name), kCanary);
    for (const auto& entry : fs::directory_iterator(At("canary")))
      fs::permissions(entry.path(), fs::perms(0666));
    MakeTrap("rootfs/dev");
    quiet_ = LaunchOnTerminal();
    ASSERT_EQ(quiet_.status, 0) << quiet_.out;
    ASSERT_THAT(quiet_.out, testing::StartsWith("/dev/pts/0\r\n"));
    before_ = Look();
  }

  void TearDown() override {
    if (!before_.empty()) {
      EXPECT_EQ(Look(), before_) << "the directory outside";
    }
    LaunchTest::TearDown();
  }

  std::string At(const std::string& name) const { return scratch_ + "/" + name; }

  // A /dev all of whose names lead to the canary: beside a plain directory "pts" there is a link.
  void MakeTrap(const std::string& name) const {
    fs::create_directories(At(name + "/pts"));
    for (const char* each : {"0", "1", "ptmx"})
      fs::create_symlink(At(Text("canary/", each)), At(Text(name, "/pts/", each)));
    fs::create_symlink(At("canary"), At(name + "/pts.link"));
    for (const char* each : kNames) fs::create_symlink(At("canary/0"), At(Text(name, "/", each)));
  }

  // What lies outside: modes, owners, times, contents.
  std::string Look() const {
    std::vector<std::string> lines;
    for (const auto& entry : fs::recursive_directory_iterator(At("canary"))) {
      struct stat info = {};
      EXPECT_EQ(::lstat(entry.path().c_str(), &info), 0);
      std::ifstream file(entry.path());
      std::string text{std::istreambuf_iterator<char>(file), {}};
      lines.push_back(Text(entry.path().c_str(), " ", info.st_mode, " ", info.st_uid, " ",
                           info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, " ", text));
    }
    std::sort(lines.begin(), lines.end());
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }

  // Where its streams lead, all devices, all mounts, and that what it writes there is shown.
  Outcome LaunchOnTerminal() const {
    std::vector<std::string> argv = {"/usr/bin/setpriv", Text("--reuid=", user_->uid),
                                     Text("--regid=", user_->gid), "--clear-groups"};
    for (const std::string& word : Command(
             {"--timeout=5m", "--tty", "--rootfs=" + rootfs_, "--ro=/usr", "--", "/bin/sh", "-c",
              "for fd in 0 1 2; do readlink /proc/self/fd/$fd; stat -Lc '%F %t:%T' "
              "/proc/self/fd/$fd; "
              "done; "
              "stat -c '%n %F %t:%T' /dev/pts/* /dev/console /dev/tty /dev/ptmx 2>&1; "
              "ls -1 /dev; cut -d' ' -f4-6 /proc/self/mountinfo | sort; "
              "cat /dev/console /dev/pts/1 2>&1; echo shown >/dev/tty"}))
      argv.push_back(word);
    OnTerminal terminal(argv, [this] { EnterDelegatedCgroup(user_->uid); });
    Outcome outcome;
    outcome.out = terminal.WholeScreen();
    outcome.status = terminal.Wait();
    return outcome;
  }

  // Whatever name the directory of its terminal has by now: its streams are that.
  static bool HasItsTerminal(const std::string& screen) {
    const std::vector<std::string_view> lines = Split(screen, '\n');
    if (lines.size() < 6) return false;
    for (std::size_t at = 0; at < 6; at += 2) {
      const std::string_view name = Trim(lines[at]);
      if (name != "/dev/pts/0" && name != "/other/pts/0" && name != "/dev.aside/pts/0")
        return false;
      if (Trim(lines[at + 1]) != "character special file 88:0") return false;
    }
    return true;
  }

  // A launch shows what a quiet one does, or is refused for the root. Where all of /dev is
  // exchanged, what a program finds by that name later may be the root's, but not what it was
  // given. Returns how many ran, and how many were refused.
  std::pair<int, int> Race(const std::function<void()>& swap, bool whole_dev) {
    Swapper swapper(swap);
    int good = 0;
    int refused = 0;
    const int launches = RaceLaunches() / 3;
    const Patience patience;
    auto is_one_sided = [&] { return good == 0 || (whole_dev && refused == 0); };
    for (int launch = 0; launch < launches || (is_one_sided() && patience.Lasts()); ++launch) {
      const Outcome ran = LaunchOnTerminal();
      EXPECT_THAT(ran.out, Not(HasSubstr(kCanary)));
      const bool is_quiet = ran.status == 0 && ran.out == quiet_.out;
      const bool is_good = is_quiet || (whole_dev && HasItsTerminal(ran.out));
      const bool is_refused = ran.status == 125 && (ran.out.starts_with("taskcell-launch: ") ||
                                                    ran.out.starts_with("taskcell-init: "));
      EXPECT_TRUE(is_good || is_refused) << ran.status << ": " << ran.out;
      if (HasFailure()) break;
      ++(is_good ? good : refused);
    }
    return {good, refused};
  }

  std::string rootfs_;
  Outcome quiet_;
  std::string before_;
};

// Where there are no refusals but for a root that could not be looked through meanwhile.
TEST_F(TerminalRaceTest, CVE_2025_52565_WhatTheRootHasInItsDevIsOfNoMatter) {
  const std::string dev = rootfs_ + "/dev/";
  for (const auto& swap : {Exchange(dev + "pts/0", dev + "console"),
                           FlipToLink(dev + "pts", At("canary"), 1000, 20'000)}) {
    const auto slowly = [&swap] {
      swap();
      (void)::usleep(20'000);
    };
    EXPECT_GT(Race(slowly, false).first, 0);
  }
}

TEST_F(TerminalRaceTest, CVE_2025_52565_AnExchangedDevIsTheCellsOwnOrThereIsNoCell) {
  MakeTrap("rootfs/other");
  auto [good, refused] = Race(Exchange(rootfs_ + "/dev", rootfs_ + "/other"), true);
  EXPECT_GT(good, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(TerminalRaceTest, CVE_2025_52565_ADevThatIsALinkFromTimeToTimeLeadsNoTerminalElsewhere) {
  auto [good, refused] = Race(FlipToLink(rootfs_ + "/dev", At("canary"), 1000, 20'000), true);
  EXPECT_GT(good, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace taskcell::test
