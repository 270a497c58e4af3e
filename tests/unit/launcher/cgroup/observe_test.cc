#include "launcher/cgroup/observe.h"

#include "launcher/cgroup/events.h"
#include "launcher/cgroup/limits.h"
#include "launcher/cgroup/name.h"
#include "tests/unit/launcher/cgroup/fake_tree.h"

namespace taskcell::cgroup {
namespace {

constexpr char kRun[] = "run-0123456789abcdef0123456789abcdef";

TEST(RunNameTest, OnlyARunIdMakesOne) {
  EXPECT_TRUE(IsRunName(kRun));
  EXPECT_EQ(RunName("0123456789abcdef0123456789abcdef"), kRun);
  for (const char* name :
       {"run-0123456789abcdef0123456789abcde", "run-0123456789abcdef0123456789abcdef0",
        "run-0123456789ABCDEF0123456789abcdef", "ran-0123456789abcdef0123456789abcdef",
        "run-../456789abcdef0123456789abcdef0", ""})
    EXPECT_FALSE(IsRunName(name)) << name;
}

TEST(LevelsTest, UpwardsEndsAtTheMount) {
  EXPECT_EQ(LevelsUpwards("a/b/c"), (std::vector<std::string>{"a/b/c", "a/b", "a", ""}));
  EXPECT_EQ(LevelsUpwards(""), std::vector<std::string>{""});
}

TEST(LevelsTest, NativeCellHasTwoLevels) {
  std::string run = std::string("a/") + kRun;
  EXPECT_EQ(LevelsOfCell(run + "/cell"), (std::vector<std::string>{run + "/cell", run}));
  EXPECT_EQ(LevelsOfCell(std::string(kRun) + "/cell"),
            (std::vector<std::string>{std::string(kRun) + "/cell", kRun}));
  EXPECT_EQ(LevelsOfCell("docker/abc"), std::vector<std::string>{"docker/abc"});
  EXPECT_EQ(LevelsOfCell("docker/cell"), std::vector<std::string>{"docker/cell"});
  EXPECT_EQ(LevelsOfCell(run + "/other"), std::vector<std::string>{run + "/other"});
}

class ObserveTest : public FakeTreeTest {
 protected:
  void PutProcess(const std::string& cgroups) {
    Put("proc/status", "Name:\tx\nUid:\t1500\t1501\t1502\t1503\nGid:\t5\t6\t7\t8\n");
    Put("proc/cgroup", cgroups);
    proc_ = sys::OpenAt2(dir(), "proc", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath).value();
  }
  Result<cell::OutsideAttestation> Look(bool unified) {
    Layout layout;
    layout.hierarchies.push_back(Fake(unified, "/"));
    return ObserveIn(layout, proc_.get(), 42, false);
  }
  UniqueFd proc_;
};

TEST_F(ObserveTest, SmallestLimitUpToTheRootIsInForce) {
  PutProcess("3:memory,pids,cpu:/run/cell\n1:name=systemd:/x\n");
  Put("run/cell/memory.limit_in_bytes", "9223372036854771712");
  Put("run/cell/memory.memsw.limit_in_bytes", "9223372036854771712");
  Put("run/cell/pids.max", "max");
  Put("run/cell/cpu.cfs_quota_us", "-1");
  Put("run/cell/cpu.cfs_period_us", "100000");
  Put("run/memory.limit_in_bytes", "1000");
  Put("run/memory.memsw.limit_in_bytes", "2000");
  Put("run/pids.max", "32");
  Put("run/cpu.cfs_quota_us", "50000");
  Put("run/cpu.cfs_period_us", "100000");
  Put("memory.limit_in_bytes", "500");
  Result<cell::OutsideAttestation> seen = Look(false);
  ASSERT_TRUE(seen.ok()) << seen.error().text;
  EXPECT_EQ(seen->host_pid, 42);
  EXPECT_EQ(seen->host_uids, (std::array<uint32_t, 4>{1500, 1501, 1502, 1503}));
  EXPECT_EQ(seen->host_gids, (std::array<uint32_t, 4>{5, 6, 7, 8}));
  EXPECT_EQ(seen->cgroups,
            (std::vector<std::string>{"3:memory,pids,cpu:/run/cell", "1:name=systemd:/x"}));
  EXPECT_EQ(seen->limits.memory_bytes, 500U);
  EXPECT_EQ(seen->limits.memory_and_swap_bytes, 2000U);
  EXPECT_EQ(seen->limits.pids, 32U);
  EXPECT_EQ(seen->limits.cpu_quota_us, 50000U);
  EXPECT_EQ(seen->limits.cpu_period_us, 100000U);
}

TEST_F(ObserveTest, UnifiedLimitsAreRead) {
  PutProcess("0::/run/cell\n");
  Put("run/cell/cgroup.procs", "");  // no controller is handed down to it
  Put("run/memory.max", "1000");
  Put("run/memory.swap.max", "0");
  Put("run/pids.max", "32");
  Put("run/cpu.max", "50000 100000");
  Result<cell::OutsideAttestation> seen = Look(true);
  ASSERT_TRUE(seen.ok()) << seen.error().text;
  EXPECT_EQ(seen->limits.memory_bytes, 1000U);
  EXPECT_EQ(seen->limits.memory_and_swap_bytes, 1000U);
  EXPECT_EQ(seen->limits.pids, 32U);
  EXPECT_EQ(seen->limits.cpu_quota_us, 50000U);
}

// The kernel asks the cell's own; one above it says nothing of it.
TEST_F(ObserveTest, WhetherTheWholeCellIsKilledIsReadAtTheNearest) {
  PutProcess("0::/run/cell\n");
  Put("run/cell/cgroup.procs", "");
  Put("run/memory.oom.group", "0\n");
  Put("memory.oom.group", "1\n");
  EXPECT_EQ(Look(true)->limits.oom_group, false);
  Put("run/memory.oom.group", "1\n");
  Put("memory.oom.group", "0\n");
  EXPECT_EQ(Look(true)->limits.oom_group, true);
  EXPECT_EQ(Look(false)->limits.oom_group, std::nullopt);
}

TEST_F(ObserveTest, WhatIsNotVisibleIsNotClaimed) {
  PutProcess("0::/../elsewhere\n");
  Put("memory.max", "1000");
  Result<cell::OutsideAttestation> seen = Look(true);
  ASSERT_TRUE(seen.ok()) << seen.error().text;
  EXPECT_EQ(seen->limits.memory_bytes, std::nullopt);
  EXPECT_EQ(seen->limits.memory_and_swap_bytes, std::nullopt);
  EXPECT_EQ(seen->limits.pids, std::nullopt);
}

TEST_F(ObserveTest, MalformedProcFilesAreRefused) {
  PutProcess("0::/\n");
  EXPECT_TRUE(Look(true).ok());
  Put("proc/status", "Name:\tx\nUid:\t1500\t1501\t1502\nGid:\t5\t6\t7\t8\n");
  EXPECT_FALSE(Look(true).ok());
  Put("proc/status", "Uid:\t1\t1\t1\t4294967296\nGid:\t5\t6\t7\t8\n");
  EXPECT_FALSE(Look(true).ok());
  PutProcess("nonsense\n");
  EXPECT_FALSE(Look(true).ok());
}

TEST_F(ObserveTest, VanishedProcessIsNamed) {
  Result<cell::OutsideAttestation> seen = Observe(0x7FFFFFFF);
  ASSERT_FALSE(seen.ok());
  EXPECT_NE(seen.error().text.find("observe process 2147483647"), std::string::npos);
}

class EventsTest : public FakeTreeTest {
 protected:
  Result<Events> Look(bool unified, const std::string& cgroup) {
    Layout layout;
    layout.hierarchies.push_back(Fake(unified, "/"));
    if (!unified) layout.hierarchies[0].controllers.emplace_back("cpuacct");
    cell::OutsideAttestation outside;
    outside.cgroups = {cgroup};
    return ReadEventsIn(layout, outside);
  }
};

TEST_F(EventsTest, V1CountersOfBothLevelsOfACell) {
  std::string run = kRun;
  Put(run + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  Put(run + "/memory.max_usage_in_bytes", "900\n");
  Put(run + "/pids.events", "max 0\n");
  Put(run + "/cell/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  Put(run + "/cell/memory.max_usage_in_bytes", "800\n");
  Put(run + "/cell/pids.events", "max 3\n");
  Put(run + "/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 77\n");
  Put(run + "/cell/cpuacct.usage", "5000000\n");
  Result<Events> events = Look(false, "4:memory,pids,cpu,cpuacct:/" + run + "/cell");
  ASSERT_TRUE(events.ok()) << events.error().text;
  EXPECT_EQ(events->oom_kills, 2U);
  EXPECT_EQ(events->pids_refusals, 3U);
  EXPECT_EQ(events->peak_memory_bytes, 900U);
  EXPECT_EQ(events->cpu_us, 5000U);
  EXPECT_EQ(events->cpu_throttles, 4U);
}

TEST_F(EventsTest, V2CountersOfAnEnginesCell) {
  Put("docker/a/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n");
  Put("docker/a/memory.peak", "4096\n");
  Put("docker/a/pids.events", "max 1\n");
  Put("docker/a/cpu.stat", "usage_usec 77\nuser_usec 70\nnr_throttled 2\n");
  Result<Events> events = Look(true, "0::/docker/a");
  ASSERT_TRUE(events.ok()) << events.error().text;
  EXPECT_EQ(events->oom_kills, 1U);
  EXPECT_EQ(events->pids_refusals, 1U);
  EXPECT_EQ(events->peak_memory_bytes, 4096U);
  EXPECT_EQ(events->cpu_us, 77U);
  EXPECT_EQ(events->cpu_throttles, 2U);
}

TEST_F(EventsTest, CountersOutOfSightAreAnErrorAndNotZero) {
  EXPECT_FALSE(Look(true, "0::/../x").ok());
  EXPECT_FALSE(Look(true, "0::/gone").ok());
}

TEST_F(EventsTest, SharedProcessorTimeSaysNothing) {
  Put("a/pids.events", "max 0\n");
  Put("cpuacct.usage", "5000000\n");
  Put("a/cpu.stat", "nr_throttled 1\n");
  Layout layout;
  layout.hierarchies = {Fake(false, "/"), Fake(false, "/")};
  layout.hierarchies[1].controllers = {"cpuacct"};
  cell::OutsideAttestation outside;
  outside.cgroups = {"4:memory,pids,cpu:/a", "2:cpuacct:/"};
  EXPECT_EQ(ReadEventsIn(layout, outside)->cpu_us, std::nullopt);
  EXPECT_EQ(ReadEventsIn(layout, outside)->cpu_throttles, 1U) << "these count by themselves";
  outside.cgroups[1] = "2:cpuacct:/a";
  Put("a/cpuacct.usage", "6000000\n");
  EXPECT_EQ(ReadEventsIn(layout, outside)->cpu_us, 6000U);
}

}  // namespace
}  // namespace taskcell::cgroup
