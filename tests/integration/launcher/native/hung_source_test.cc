// Launches whose sources are on a file system that does not answer.
#include <gmock/gmock.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/process.h"
#include "tests/support/host_guard.h"
#include "tests/support/hung_files.h"
#include "tests/support/launch.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

class HungSourceTest : public LaunchTest {
 protected:
  // What a launcher that was killed has left goes with the next run, as soon as nobody is in it.
  void TearDown() override {
    constexpr int kTries = 50;
    for (int run = 0; run < kTries && CellCgroups() != before_; ++run)
      EXPECT_EQ(Launch({"--", "/bin/true"}).status, 0);
    EXPECT_EQ(CellCgroups(), before_);
    LaunchTest::TearDown();
  }

 private:
  const std::vector<std::string> before_ = CellCgroups();
};

// The children of `pid`, as the kernel lists them.
std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::ifstream file(Text("/proc/", pid, "/task/", pid, "/children"));
  return {std::istream_iterator<pid_t>(file), {}};
}

bool IsRunning(pid_t pid) {
  std::ifstream file(Text("/proc/", pid, "/stat"));
  std::string name;
  std::string state;
  return static_cast<bool>(file >> pid >> name >> state) && state != "Z" && state != "X";
}

// By its own copying child, by the cell's, and by itself, which wait for one that does not answer.
TEST_F(HungSourceTest, ASignalEndsALaunchThatWaitsForAFileSystem) {
  TASKCELL_REQUIRE(HasFuse(), kNeedsFuse);
  const std::string hung = scratch_ + "/hung";
  std::filesystem::create_directory(hung);
  struct Row {
    std::string option;
    HungFiles::Answers answers;
  };
  for (const Row& row : {Row{"--agent-dir=" + hung, HungFiles::Answers::kRoot},
                         Row{"--agent-dir=" + hung, HungFiles::Answers::kNothing},
                         Row{"--agent-dir=" + hung + "/agent", HungFiles::Answers::kNothing},
                         Row{"--ro=" + hung + ":/data", HungFiles::Answers::kNothing}}) {
    SCOPED_TRACE(row.option);
    int status = InChild([&] {
      if (!EnterOwnMounts()) return 90;
      const HungFiles files(hung, row.answers);
      if (!files.mounted()) return 91;
      RunOptions options;
      options.in_child = [] {
        const pid_t self = ::getpid();
        if (::fork() != 0) return;
        (void)::usleep(500'000);
        ::_exit(::kill(self, SIGTERM));
      };
      const auto begun = std::chrono::steady_clock::now();
      const Outcome ran = Launch({row.option, "--", "/bin/true"}, options);
      const auto took = std::chrono::steady_clock::now() - begun;
      if (took < std::chrono::milliseconds(400)) return 1;  // it did not wait
      if (took > std::chrono::seconds(10)) return 2;
      return ran.status == 128 + SIGTERM ? 0 : 3;
    });
    EXPECT_EQ(status, 0);
  }
}

// The same, with nobody there to send one.
TEST_F(HungSourceTest, ATimeLimitEndsALaunchThatWaitsForAFileSystem) {
  TASKCELL_REQUIRE(HasFuse(), kNeedsFuse);
  const std::string hung = scratch_ + "/hung";
  const std::string report = scratch_ + "/report.json";
  std::filesystem::create_directory(hung);
  for (const std::string& option :
       {"--agent-dir=" + hung, "--ro=" + hung + ":/data", "--rootfs=" + hung}) {
    for (int requests = 0; requests < 4; ++requests) {
      SCOPED_TRACE(Text(option, " after ", requests));
      const int status = InChild([&] {
        if (!EnterOwnMounts()) return 90;
        const HungFiles files(hung, requests);
        if (!files.mounted()) return 91;
        const auto begun = std::chrono::steady_clock::now();
        RunOptions options;  // also where whoever starts it ignores what the limit is told by
        if (requests % 2 == 0) options.in_child = [] { (void)::signal(SIGALRM, SIG_IGN); };
        const Outcome ran = Launch({"--timeout=500ms", option, "--", "/bin/true"}, options);
        if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(10)) return 1;
        if (ran.status == 128 + SIGALRM) return 0;            // it waited itself
        if (ran.status != 124) return requests == 0 ? 2 : 3;  // 3: enough was answered
        return ran.err.find("--timeout was up before") != std::string::npos ? 0 : 4;
      });
      EXPECT_TRUE(status == 0 || (status == 3 && requests > 0)) << status;
    }
  }
}

// Killed while its file system answers neither it nor, a request later, the child that makes the
// cell: that one may be in a cgroup of no run yet, where no later launch would find it.
TEST_F(HungSourceTest, AKilledLauncherLeavesNoChildThatWaitsForAFileSystem) {
  TASKCELL_REQUIRE(HasFuse(), kNeedsFuse);
  const std::string hung = scratch_ + "/hung";
  std::filesystem::create_directory(hung);
  bool met = false;
  constexpr int kMostRequests = 24;
  for (int requests = 0; requests < kMostRequests; ++requests) {
    SCOPED_TRACE(requests);
    constexpr int kMetAChild = 1;
    constexpr int kLeftOne = 2;
    const int status = InChild([&] {
      if (!EnterOwnMounts()) return 90;
      const HungFiles files(hung, requests);
      if (!files.mounted()) return 91;
      const pid_t launcher = ::fork();
      if (launcher == 0) {
        const std::string program = Program("taskcell-launch");
        EnterDelegatedCgroup(user_->uid);
        if (::setgroups(0, nullptr) != 0 || ::setgid(user_->gid) != 0 || ::setuid(user_->uid) != 0)
          ::_exit(90);
        (void)sys::Execute(program, {program, "--ro=" + hung + ":/data", "--", "/bin/true"}, {});
        ::_exit(91);
      }
      std::vector<pid_t> children;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
      while (IsRunning(launcher) && std::chrono::steady_clock::now() < end) {
        children = ChildrenOf(launcher);
        (void)::usleep(5000);
      }
      const bool waits = IsRunning(launcher);
      ::kill(launcher, SIGKILL);
      ::waitpid(launcher, nullptr, 0);
      if (!waits || children.empty()) return 0;
      const bool gone =
          WaitFor([&] { return std::none_of(children.begin(), children.end(), IsRunning); });
      for (pid_t child : children) ::kill(child, SIGKILL);
      return gone ? kMetAChild : kLeftOne;
    });
    EXPECT_NE(status, kLeftOne);
    EXPECT_LT(status, 90);
    met = met || status == kMetAChild;
  }
  EXPECT_TRUE(met) << "control: a child waited";
}

}  // namespace
}  // namespace taskcell::test
