// What a launch costs in system calls, which do not depend on how busy the machine is. The times
// are compared by ./dev bench.
#include <fcntl.h>
#include <grp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "launcher/base/text.h"
#include "tests/support/count_calls.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

class CostTest : public LaunchTest {
 protected:
  CallCount Count(const std::vector<std::string>& root, const std::vector<std::string>& program);
  uint64_t Least(const std::vector<std::string>& root, const std::vector<std::string>& program);
};

CallCount CostTest::Count(const std::vector<std::string>& root,
                          const std::vector<std::string>& program) {
  std::vector<std::string> argv = Command({"--memory=64M", "--pids=32", "--cpus=0.5"});
  argv.insert(argv.end(), root.begin(), root.end());
  argv.emplace_back("--");
  argv.insert(argv.end(), program.begin(), program.end());
  return CountCalls([&] {
    std::vector<char*> pointers;
    for (std::string& argument : argv) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; ++fd) {
      if (::dup2(null, fd) != fd) return;
    }
    EnterDelegatedCgroup(user_->uid);
    if (::setgroups(0, nullptr) == 0 && ::setresgid(user_->gid, user_->gid, user_->gid) == 0 &&
        ::setresuid(user_->uid, user_->uid, user_->uid) == 0)
      ::execv(pointers[0], pointers.data());
  });
}

// Of the launcher and of init, the program's own are not theirs. How often they wait, and whether
// the launcher finds time to rest, is up to how busy the machine is.
uint64_t OwnCalls(const CallCount& count) {
  uint64_t own = 0;
  for (const char* program : {"taskcell-launch", "taskcell-init"}) {
    const auto found = count.by_program.find(program);
    if (found == count.by_program.end()) return 0;
    for (const auto& [number, calls] : found->second) {
      if (number != SYS_poll && number != SYS_madvise) own += calls;
    }
  }
  return own;
}

// Of a few launches: one looks at what other launches of the same user left or are about to leave.
uint64_t CostTest::Least(const std::vector<std::string>& root,
                         const std::vector<std::string>& program) {
  constexpr int kRounds = 3;
  uint64_t least = ~uint64_t{0};
  for (int round = 0; round < kRounds; ++round) {
    const CallCount count = Count(root, program);
    EXPECT_EQ(count.status, 0);
    EXPECT_EQ(count.processes, 3U);
    EXPECT_EQ(count.programs, 3U);
    least = std::min(least, OwnCalls(count));
  }
  return least;
}

// What the number depends on beside the code: each capability of the kernel is dropped by a call,
// and what is there of a list of names in /proc is covered or made read-only, and attested.
uint64_t CallsOfKernel() {
  constexpr uint64_t kOfFile = 6;
  constexpr uint64_t kOfDirectory = 12;
  constexpr uint64_t kOfReadOnly = 7;
  uint64_t calls = 0;
  std::ifstream("/proc/sys/kernel/cap_last_cap") >> calls;
  for (const char* name :
       {"acpi", "asound", "interrupts", "kcore", "key-users", "keys", "latency_stats",
        "sched_debug", "scsi", "thermal", "timer_list", "timer_stats"}) {
    const std::filesystem::path path = std::filesystem::path("/proc") / name;
    if (std::filesystem::is_directory(path))
      calls += kOfDirectory;
    else if (std::filesystem::exists(path))
      calls += kOfFile;
  }
  for (const char* name : {"sys", "irq", "bus", "fs"}) {
    if (std::filesystem::exists(std::filesystem::path("/proc") / name)) calls += kOfReadOnly;
  }
  if (std::filesystem::exists("/proc/sysrq-trigger")) calls += kOfReadOnly - 1;
  return calls;
}

// Counted with v1 on a host and with v2 in a guest. What else kernels differ in, Landlock and the
// files of limits among it, is within the rest; more than that is a change of ours, which goes into
// the number where it is needed.
TEST_F(CostTest, ALaunchMakesAsManySystemCallsAsItDid) {
  constexpr uint64_t kOnV1 = 1059;
  constexpr uint64_t kOnV2 = 958;
  constexpr uint64_t kRest = 40;
  const bool is_v1 = std::filesystem::exists("/sys/fs/cgroup/memory");
  const uint64_t expected = (is_v1 ? kOnV1 : kOnV2) + CallsOfKernel();
  const uint64_t found = Least({"--rootfs=" + MakeRootfs()}, {"/launch", "--version"});
  EXPECT_LE(found, expected + kRest);
  EXPECT_GE(found, expected - kRest);
}

// How much more is up to what the host has of directories in / and of files in /etc.
TEST_F(CostTest, ALaunchWithTheHostsRootMakesFewMore) {
  constexpr uint64_t kAtMostMore = 150;
  EXPECT_LE(Least({"--host-root"}, {"/bin/true"}),
            Least({"--rootfs=" + MakeRootfs()}, {"/launch", "--version"}) + kAtMostMore);
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
    // Pages of a program that was copied just now are dirty until they are on the disk.
    ::sync();
    for (int i = 0; i < kTries && Kilobytes(pid, "Private_Dirty:") > kMostDirty; ++i)
      std::this_thread::sleep_for(kPause);
    EXPECT_GT(Kilobytes(pid, "Private_Dirty:"), 0U);
    EXPECT_LE(Kilobytes(pid, "Private_Dirty:"), kMostDirty);
  }
  std::ofstream(directory + "/done").flush();
  runs.join();
}
#endif

}  // namespace
}  // namespace taskcell::test
