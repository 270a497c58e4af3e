// What a launch costs in system calls, which do not depend on how busy the machine is. The times
// are compared by ./dev bench.
#include <grp.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "launcher/base/text.h"
#include "tests/support/count_calls.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

// 1217 with limits on three v1 hierarchies and Landlock. Kernels with more capabilities to drop or
// more of /proc to hide need a few more.
constexpr uint64_t kMostCalls = 1250;

class CostTest : public LaunchTest {};

TEST_F(CostTest, ALaunchMakesNoMoreSystemCallsThanItDid) {
  std::vector<std::string> argv =
      Command({"--memory=64M", "--pids=32", "--cpus=0.5", "--rootfs=" + MakeRootfs(), "--",
               "/launch", "--version"});
  CallCount count = CountCalls([&] {
    std::vector<char*> pointers;
    for (std::string& argument : argv) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    EnterDelegatedCgroup(user_->uid);
    if (::setgroups(0, nullptr) == 0 && ::setresgid(user_->gid, user_->gid, user_->gid) == 0 &&
        ::setresuid(user_->uid, user_->uid, user_->uid) == 0)
      ::execv(pointers[0], pointers.data());
  });
  EXPECT_EQ(count.status, 0);
  EXPECT_GT(count.calls, kMostCalls / 2);
  EXPECT_LE(count.calls, kMostCalls);
}

#if defined(AS_DELIVERED)
// The kilobytes of a line of /proc/<pid>/smaps_rollup; 0 where there is none.
uint64_t Kilobytes(const std::string& pid, std::string_view name) {
  std::ifstream rollup("/proc/" + pid + "/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() == 3 && words[0] == name) return ParseUnsigned(words[1]).value_or(0);
  }
  return 0;
}

TEST_F(CostTest, WhileACellSleepsItsLauncherAndItsInitAreSmall) {
  const std::string directory = scratch_ + "/seen";
  std::filesystem::create_directory(directory);
  std::filesystem::permissions(directory, std::filesystem::perms::all);
  RunOptions options;
  options.in_child = [&] { std::ofstream(directory + "/launcher") << ::getpid(); };
  std::thread runs([&] {
    Outcome ran = Launch({"--bind-rw=" + directory + ":/seen", "--", "/bin/sh", "-c",
                          "echo >/seen/up; until [ -e /seen/done ]; do sleep 0.1; done"},
                         options);
    EXPECT_EQ(ran.status, 0) << ran.err;
  });
  constexpr int kTries = 1000;
  constexpr auto kPause = std::chrono::milliseconds(10);
  for (int i = 0; i < kTries && !std::filesystem::exists(directory + "/up"); ++i)
    std::this_thread::sleep_for(kPause);
  std::string launcher;
  std::string init;
  std::ifstream(directory + "/launcher") >> launcher;
  std::ifstream("/proc/" + launcher + "/task/" + launcher + "/children") >> init;
  for (const std::string& pid : {launcher, init}) {
    SCOPED_TRACE(pid == init ? "taskcell-init" : "taskcell-launch");
    constexpr uint64_t kMostResident = 1024;
    constexpr uint64_t kMostDirty = 512;
    for (int i = 0; i < kTries && Kilobytes(pid, "Rss:") > kMostResident; ++i)
      std::this_thread::sleep_for(kPause);
    EXPECT_GT(Kilobytes(pid, "Rss:"), 0U);
    EXPECT_LE(Kilobytes(pid, "Rss:"), kMostResident);
    // What it wrote. Private_Dirty also has pages of the program where that was copied just now.
    EXPECT_LE(Kilobytes(pid, "Anonymous:"), kMostDirty);
  }
  std::ofstream(directory + "/done").flush();
  runs.join();
}
#endif

}  // namespace
}  // namespace taskcell::test
