#include "launcher/cgroup/limits.h"

#include <gtest/gtest.h>

#include "launcher/cgroup/directory.h"
#include "tests/unit/launcher/cgroup/fake_tree.h"

namespace taskcell::cgroup {
namespace {

constexpr uint64_t kMemory = 67108864;
const cell::Limits kAsked = {kMemory, 32, 500, 1024};

TEST(PlanCpuTest, HundredMillisecondPeriodsDownToTenThousandths) {
  EXPECT_EQ(PlanCpu(1000), (CpuBandwidth{100000, 100000}));
  EXPECT_EQ(PlanCpu(500), (CpuBandwidth{50000, 100000}));
  EXPECT_EQ(PlanCpu(10), (CpuBandwidth{1000, 100000}));
}

TEST(PlanCpuTest, BelowThatThePeriodGrowsAndNeverGivesMore) {
  EXPECT_EQ(PlanCpu(9), (CpuBandwidth{1000, 111112}));
  EXPECT_EQ(PlanCpu(1), (CpuBandwidth{1000, 1000000}));
  EXPECT_EQ(PlanCpu(0), PlanCpu(1));
}

TEST(ParseLimitTest, EveryWayToSayNoLimitIsUnlimited) {
  for (const char* text : {"max", "-1", "9223372036854771712", "9223372036854710272"})
    EXPECT_EQ(ParseLimit(text), kUnlimited) << text;
  EXPECT_EQ(ParseLimit("0"), 0U);
  EXPECT_EQ(ParseLimit("67108864"), kMemory);
  for (const char* text : {"", "64M", "-2", "max ", "1 2"})
    EXPECT_EQ(ParseLimit(text), std::nullopt) << text;
}

TEST(LowerTest, SmallerOfBothWinsLimitByLimit) {
  LevelLimits effective;
  LevelLimits inner;
  inner.memory = 100;
  inner.pids = kUnlimited;
  inner.cpu = CpuBandwidth{50000, 100000};
  LevelLimits outer;
  outer.memory = 200;
  outer.pids = 7;
  outer.swap = 5;
  outer.cpu = CpuBandwidth{30000, 50000};  // a smaller quota, a larger share
  Lower(effective, inner);
  Lower(effective, outer);
  EXPECT_EQ(effective.memory, 100U);
  EXPECT_EQ(effective.pids, 7U);
  EXPECT_EQ(effective.swap, 5U);
  EXPECT_EQ(effective.memory_and_swap, std::nullopt);
  EXPECT_EQ(effective.cpu, (CpuBandwidth{50000, 100000}));
  outer.cpu = CpuBandwidth{kUnlimited, 100000};
  Lower(effective, outer);
  EXPECT_EQ(effective.cpu, (CpuBandwidth{50000, 100000}));
  outer.cpu = CpuBandwidth{60000, 200000};
  Lower(effective, outer);
  EXPECT_EQ(effective.cpu, (CpuBandwidth{60000, 200000}));
}

TEST(ToSeenTest, SwapIsAddedOnV2AndTakenAsIsOnV1) {
  LevelLimits v2;
  v2.memory = 100;
  v2.swap = 0;
  EXPECT_EQ(ToSeen(v2, true).memory_and_swap_bytes, 100U);
  v2.swap = kUnlimited;
  EXPECT_EQ(ToSeen(v2, true).memory_and_swap_bytes, kUnlimited);
  LevelLimits v1;
  v1.memory = 100;
  v1.memory_and_swap = 300;
  EXPECT_EQ(ToSeen(v1, false).memory_and_swap_bytes, 300U);
}

TEST(ToSeenTest, WithoutSwapFilesOnlyAHostWithoutSwapIsLimited) {
  LevelLimits level;
  level.memory = 100;
  EXPECT_EQ(ToSeen(level, false).memory_and_swap_bytes, 100U);
  EXPECT_EQ(ToSeen(level, true).memory_and_swap_bytes, std::nullopt);
}

TEST(ListsSwapTest, HeaderAloneIsNoSwap) {
  EXPECT_FALSE(ListsSwap(""));
  EXPECT_FALSE(ListsSwap("Filename\t\t\t\tType\n"));
  EXPECT_TRUE(ListsSwap("Filename\t\t\t\tType\n/dev/vda2 partition 1048572 0 -2\n"));
}

class ApplyLimitsTest : public FakeTreeTest {
 protected:
  void MakeFiles(bool unified, std::string_view memory_content = "") {
    if (unified) {
      for (const char* name : {"memory.max", "memory.swap.max", "pids.max", "cpu.max"})
        Put(name, "");
      Put("memory.max", memory_content);
    } else {
      for (const char* name : {"memory.memsw.limit_in_bytes", "pids.max", "cpu.cfs_quota_us"})
        Put(name, "");
      Put("cpu.cfs_period_us", "100000");
      Put("memory.limit_in_bytes", memory_content);
    }
  }
};

TEST_F(ApplyLimitsTest, V1WritesEveryLimit) {
  MakeFiles(false);
  Put("memory.use_hierarchy", "0");
  Put("memory.oom_control", "oom_kill_disable 1\nunder_oom 0\n");
  Status applied = ApplyLimits(dir(), false, kControllers, kAsked, true);
  ASSERT_TRUE(applied.ok()) << applied.error().text;
  EXPECT_EQ(Get("memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(Get("memory.memsw.limit_in_bytes"), "67108864");
  EXPECT_EQ(Get("memory.use_hierarchy"), "1");
  EXPECT_EQ(Get("memory.oom_control").substr(0, 1), "0");
  EXPECT_EQ(Get("pids.max"), "32");
  EXPECT_EQ(Get("cpu.cfs_quota_us"), "50000");
  EXPECT_EQ(Get("cpu.cfs_period_us"), "100000");
}

TEST_F(ApplyLimitsTest, V2WritesEveryLimitAndNoSwap) {
  MakeFiles(true);
  Status applied = ApplyLimits(dir(), true, kControllers, kAsked, true);
  ASSERT_TRUE(applied.ok()) << applied.error().text;
  EXPECT_EQ(Get("memory.max"), "67108864");
  EXPECT_EQ(Get("memory.swap.max"), "0");
  EXPECT_EQ(Get("pids.max"), "32");
  EXPECT_EQ(Get("cpu.max"), "50000 100000");
}

TEST_F(ApplyLimitsTest, OnlyTheControllersOfThisHierarchyAreWritten) {
  Put("pids.max", "");
  EXPECT_TRUE(ApplyLimits(dir(), false, std::array{Controller::kPids}, kAsked, true).ok());
  EXPECT_FALSE(ApplyLimits(dir(), false, std::array{Controller::kMemory}, kAsked, true).ok());
}

// The file keeps what is longer than what was written, so it reads otherwise, as a kernel that
// rounds or ignores would show.
TEST_F(ApplyLimitsTest, LimitThatReadsBackOtherwiseIsRefused) {
  for (bool unified : {false, true}) {
    MakeFiles(unified, "9999999999");
    Status applied = ApplyLimits(dir(), unified, kControllers, kAsked, false);
    ASSERT_FALSE(applied.ok());
    EXPECT_EQ(applied.error().kind, Kind::kUnsupported);
    EXPECT_NE(applied.error().text.find("was set to 67108864 but reads '6710886499'"),
              std::string::npos)
        << applied.error().text;
  }
}

TEST_F(ApplyLimitsTest, CpuThatReadsBackOtherwiseIsRefused) {
  MakeFiles(true);
  Put("cpu.max", "50000 1000000");
  Status applied = ApplyLimits(dir(), true, kControllers, kAsked, false);
  ASSERT_FALSE(applied.ok());
  EXPECT_NE(applied.error().text.find("reads 50000 in 1000000"), std::string::npos)
      << applied.error().text;
}

TEST_F(ApplyLimitsTest, MemoryIsRoundedDownToAPage) {
  MakeFiles(true);
  cell::Limits odd = kAsked;
  odd.memory_bytes = kMemory + 1;
  // The fake file keeps the odd byte; a kernel rounds it off.
  Status applied = ApplyLimits(dir(), true, kControllers, odd, false);
  ASSERT_FALSE(applied.ok());
  EXPECT_NE(applied.error().text.find("67108865"), std::string::npos);
}

TEST_F(ApplyLimitsTest, HostWithSwapButWithoutSwapFileIsRefused) {
  for (bool unified : {false, true}) {
    MakeFiles(unified);
    Remove(unified ? "memory.swap.max" : "memory.memsw.limit_in_bytes");
    EXPECT_TRUE(ApplyLimits(dir(), unified, kControllers, kAsked, false).ok());
    MakeFiles(unified);
    Remove(unified ? "memory.swap.max" : "memory.memsw.limit_in_bytes");
    Status applied = ApplyLimits(dir(), unified, kControllers, kAsked, true);
    ASSERT_FALSE(applied.ok());
    EXPECT_EQ(applied.error().kind, Kind::kUnsupported);
    EXPECT_NE(applied.error().text.find("swapaccount=1"), std::string::npos);
  }
}

TEST_F(ApplyLimitsTest, LevelIsReadBack) {
  MakeFiles(false, "9223372036854771712");
  Put("memory.memsw.limit_in_bytes", "4096");
  Put("pids.max", "max");
  Put("cpu.cfs_quota_us", "-1");
  EXPECT_EQ(ReadLevel(dir(), "", false, Controller::kMemory)->memory, kUnlimited);
  EXPECT_EQ(ReadLevel(dir(), "", false, Controller::kMemory)->memory_and_swap, 4096U);
  EXPECT_EQ(ReadLevel(dir(), "", false, Controller::kPids)->pids, kUnlimited);
  EXPECT_EQ(ReadLevel(dir(), "", false, Controller::kCpu)->cpu, (CpuBandwidth{kUnlimited, 100000}));
  EXPECT_EQ(ReadLevel(dir(), "", true, Controller::kMemory)->memory, std::nullopt);
  Put("cpu.max", "max 100000");
  EXPECT_EQ(ReadLevel(dir(), "", true, Controller::kCpu)->cpu, (CpuBandwidth{kUnlimited, 100000}));
}

TEST_F(ApplyLimitsTest, LevelBelowTheDirectoryIsRead) {
  Put("a/b/pids.max", "7\n");
  EXPECT_EQ(ReadLevel(dir(), "a/b", true, Controller::kPids)->pids, 7U);
  EXPECT_EQ(ReadLevel(dir(), "a", true, Controller::kPids)->pids, std::nullopt);
}

TEST_F(ApplyLimitsTest, RecordHasASizeLimit) {
  Put("pids.max", std::string(kMaxRecordBytes - 1, ' ') + "7");
  EXPECT_EQ(ReadRecord(dir(), "pids.max").value(), "7");
  Put("pids.max", std::string(kMaxRecordBytes, ' ') + "7");
  EXPECT_EQ(ReadRecord(dir(), "pids.max").error().kind, Kind::kViolation);
}

TEST_F(ApplyLimitsTest, FileWithoutALimitIsAViolation) {
  Put("pids.max", "many");
  EXPECT_EQ(ReadLevel(dir(), "", true, Controller::kPids).error().kind, Kind::kViolation);
  for (const char* text : {"50000", "x 100000", "1 2 3", "1 max"}) {
    Put("cpu.max", text);
    EXPECT_FALSE(ReadLevel(dir(), "", true, Controller::kCpu).ok()) << text;
  }
}

}  // namespace
}  // namespace taskcell::cgroup
