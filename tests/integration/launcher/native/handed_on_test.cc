// What a process hands on to what it starts, and a cell's program does not get of it.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <set>

#include "launcher/base/text.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class HandedOnTest : public LaunchTest {
 protected:
  // Its policy, its nice value, its io class, and the limits it has.
  static std::vector<std::string> Script() {
    return {"/usr/bin/python3", "-c",
            "import os, resource, ctypes\n"
            "print(os.sched_getscheduler(0), os.nice(0), ctypes.CDLL(None).syscall(252, 1, 0) >> "
            "13)\n"
            "for n in (14, 13, 15, 12, 11, 8): print(*resource.getrlimit(n))"};
  }
  static Outcome Outside(const RunOptions& options) { return test::Run(Script(), options); }
  Outcome Inside(const RunOptions& options) const {
    std::vector<std::string> command = Script();
    command.insert(command.begin(), "--");
    return LaunchAsRoot(command, options);
  }
};

constexpr auto kLimits = {RLIMIT_RTPRIO,   RLIMIT_NICE,       RLIMIT_RTTIME,
                          RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING, RLIMIT_MEMLOCK};

// To `value`, or as near to it as may be had here.
void SetAll(rlim_t value) {
  for (auto resource : kLimits) {
    struct rlimit limit = {value, value};
    if (::setrlimit(resource, &limit) == 0) continue;
    if (::getrlimit(resource, &limit) != 0) ::_exit(90);
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(resource, &limit) != 0) ::_exit(90);
  }
}

// <linux/ioprio.h> of newer kernels is no C++.
constexpr int kIoClassShift = 13;
constexpr int kRealTime = 1;
constexpr int kIdle = 3;

void SetIoPriority(int priority) {
  constexpr int kOfProcess = 1;
  if (::syscall(SYS_ioprio_set, kOfProcess, 0, priority) != 0) ::_exit(92);
}

// The lines of Script for limits, where none may be above its ceiling.
std::string AtMost(std::string_view lines) {
  constexpr uint64_t kCeilings[] = {0, 0, 0, 819200, 4096, 8388608};
  std::string text;
  std::size_t row = 0;
  for (std::string_view line : Split(Trim(lines), '\n')) {
    uint64_t highest = ParseUnsigned(Words(line)[1]).value_or(~uint64_t{0});  // -1: none
    uint64_t value = std::min(highest, kCeilings[row++]);
    text += Text(value, " ", value, "\n");
  }
  return text;
}

TEST_F(HandedOnTest, ARealTimePolicyAndItsLimitsStayOutside) {
  RunOptions options;
  options.in_child = [] {
    SetAll(RLIM_INFINITY);
    struct sched_param first = {1};
    if (::sched_setscheduler(0, SCHED_FIFO, &first) != 0) ::_exit(91);
    SetIoPriority(kRealTime << kIoClassShift | 4);
  };
  Outcome control = Outside(options);
  TASKCELL_REQUIRE(control.status == 0, "needs a kernel that gives root the policy SCHED_FIFO");
  const std::string first_line = "1 0 1\n";
  ASSERT_THAT(control.out, testing::StartsWith(first_line));
  Outcome ran = Inside(options);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "0 0 0\n" + AtMost(control.out.substr(first_line.size())));
  EXPECT_NE(ran.out.substr(first_line.size()), control.out.substr(first_line.size()));
}

TEST_F(HandedOnTest, WhatGivesAProgramLessIsKept) {
  RunOptions options;
  options.in_child = [] {
    SetAll(0);
    struct sched_param none = {};
    if (::sched_setscheduler(0, SCHED_BATCH, &none) != 0 || ::nice(7) != 7) ::_exit(91);
    SetIoPriority(kIdle << kIoClassShift);
  };
  const std::string same = "3 7 3\n0 0\n0 0\n0 0\n0 0\n0 0\n0 0\n";
  EXPECT_EQ(Outside(options).out, same);
  EXPECT_EQ(Inside(options).out, same);
}

// A process with such a policy would stand above --cpus, and init is what ends the others.
TEST_F(HandedOnTest, TheProgramCannotTakeARealTimePolicy) {
  const std::string script =
      "import os\n"
      "try: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); print('taken')\n"
      "except PermissionError: print('refused')";
  EXPECT_EQ(test::Run({"/usr/bin/python3", "-c", script}).out, "taken\n");  // control
  RunOptions options;
  options.in_child = [] { SetAll(RLIM_INFINITY); };
  EXPECT_EQ(LaunchAsRoot({"--", "/usr/bin/python3", "-c", script}, options).out, "refused\n");
}

// As in a service with AmbientCapabilities=: over every exec they come along.
TEST_F(HandedOnTest, InheritableAndAmbientCapabilitiesStayOutside) {
  RunOptions options;
  options.in_child = [this] { EnterDelegatedCgroup(user_->uid); };
  auto sets = [&](std::vector<std::string> command) {
    command.insert(command.begin(),
                   {"/usr/bin/setpriv", "--reuid=" + user_->name, Text("--regid=", user_->gid),
                    "--clear-groups", "--inh-caps=+net_raw", "--ambient-caps=+net_raw", "--"});
    Outcome ran = test::Run(command, options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::vector<uint64_t> found;  // inheritable, permitted, effective, bounding, ambient
    if (ran.out.empty()) return found;
    for (std::string_view line : Split(Trim(ran.out), '\n'))
      found.push_back(std::stoull(std::string(Words(line).back()), nullptr, 16));
    return found;
  };
  const std::vector<std::string> show = {"/bin/grep", "^Cap", "/proc/self/status"};
  constexpr uint64_t kNetRaw = uint64_t{1} << 13U;
  const std::vector<uint64_t> outside = sets(show);
  ASSERT_EQ(outside.size(), 5U);
  for (std::size_t set : {0U, 1U, 2U, 4U}) EXPECT_EQ(outside[set], kNetRaw) << "control: " << set;
  for (const char* userns : {"--userns=own", "--userns=prefer-subids"}) {
    std::vector<std::string> command = Command({userns, "--"});
    command.insert(command.end(), show.begin(), show.end());
    EXPECT_EQ(sets(command), (std::vector<uint64_t>{0, 0, 0, 0, 0})) << userns;
  }
}

// Every file of this kind that the kernel of this host has, as far as this user's /proc shows it.
TEST_F(HandedOnTest, TheHostWidePartsOfProcAreCovered) {
  std::set<std::string> there;
  for (const char* name :
       {"acpi", "asound", "interrupts", "kcore", "key-users", "keys", "latency_stats",
        "sched_debug", "scsi", "thermal", "timer_list", "timer_stats"}) {
    if (std::filesystem::exists(Text("/proc/", name))) there.insert(name);
  }
  ASSERT_TRUE(there.contains("interrupts") && there.contains("keys"));
  for (const std::string& name : there) {
    SCOPED_TRACE(name);
    Outcome ran = Launch({"--", "/bin/sh", "-c",
                          Text("stat -c %F /proc/", name, "; cat /proc/", name, "; ls -A /proc/",
                               name, "/ 2>/dev/null; echo x 2>/dev/null >/proc/", name, "/new")});
    EXPECT_THAT(ran.out, testing::AnyOf("character special file\n", "directory\n")) << ran.err;
  }
}

}  // namespace
}  // namespace taskcell::test
