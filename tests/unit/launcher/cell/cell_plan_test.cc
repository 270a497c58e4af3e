#include "launcher/cell/cell_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "launcher/base/text.h"
#include "tests/unit/launcher/cell/sample_plan.h"

namespace taskcell::cell {
namespace {

using ::testing::HasSubstr;

TEST(CellPlanTest, APlanComesBackAsItWasSent) {
  std::string bytes = EncodePlan(SamplePlan());
  Result<CellPlan> back = ParsePlan(bytes);
  ASSERT_TRUE(back.ok()) << back.error().text;
  EXPECT_EQ(EncodePlan(back.value()), bytes);
  EXPECT_EQ(back->mounts.at(1).target, "/run/taskcell/init");
  EXPECT_EQ(back->mounts.at(0).kind, EntryKind::kDirectory);
  EXPECT_EQ(back->tmpfs.at(1).size_bytes, 512U << 20U);
  EXPECT_EQ(back->limits.cpu_millis, 500U);
  EXPECT_EQ(back->limits.file_bytes, 8U << 20U);
  EXPECT_EQ(back->limits.io_weight, 50U);
  EXPECT_EQ(back->limits.cpu_set, "0-1,3");
  EXPECT_EQ(back->network, NetworkMode::kProvider);
  EXPECT_EQ(back->image_environment.at(0), "NODE_VERSION");
}

TEST(CellPlanTest, EveryTruncationAndAnyTrailingByteIsRefused) {
  std::string bytes = EncodePlan(SamplePlan());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Result<CellPlan> cut = ParsePlan(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.error().kind, Kind::kViolation) << size;
  }
  Result<CellPlan> longer = ParsePlan(bytes + '\0');
  ASSERT_FALSE(longer.ok());
  EXPECT_THAT(longer.error().text, HasSubstr("1 bytes too many"));
}

// No byte of a plan can be turned over into something that crashes the parser or that comes back as
// another byte string than the one that was read.
TEST(CellPlanTest, AFlippedByteIsRefusedOrReadAsItStands) {
  std::string bytes = EncodePlan(SamplePlan());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x81);
    Result<CellPlan> plan = ParsePlan(changed);
    if (plan.ok()) {
      EXPECT_EQ(EncodePlan(plan.value()), changed) << at;
    }
  }
}

TEST(CellPlanTest, APlanAboveItsBoundIsRefusedWhateverItHolds) {
  Result<CellPlan> over = ParsePlan(std::string(kMaxPlanBytes + 1, 'x'));
  ASSERT_FALSE(over.ok());
  EXPECT_THAT(over.error().text, HasSubstr("more than 1048576 bytes"));
}

TEST(CellPlanTest, ACountWithoutItsBytesTakesNoMemory) {
  std::string bytes = EncodePlan(SamplePlan());
  std::size_t at = bytes.rfind("NODE_VERSION") - 8;
  bytes.replace(at, 4, std::string("\xff\xff\xff\xff", 4));
  EXPECT_FALSE(ParsePlan(bytes).ok());
}

struct Refused {
  const char* name;
  std::function<void(CellPlan&)> change;
  const char* reason;
};

class CheckPlanTest : public ::testing::TestWithParam<Refused> {};

TEST_P(CheckPlanTest, IsRefusedWithItsReasonAndOnlyThen) {
  CellPlan plan = SamplePlan();
  ASSERT_TRUE(CheckPlan(plan).ok());
  GetParam().change(plan);
  Status status = CheckPlan(plan);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, Kind::kConfig);
  EXPECT_THAT(status.error().text, HasSubstr(GetParam().reason));
  EXPECT_FALSE(ParsePlan(EncodePlan(plan)).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Each, CheckPlanTest,
    ::testing::Values(
        Refused{"ShortRunId", [](CellPlan& p) { p.run_id.pop_back(); }, "run id"},
        Refused{"UpperRunId", [](CellPlan& p) { p.run_id[0] = 'A'; }, "run id"},
        Refused{"AgentPath", [](CellPlan& p) { p.agent = "../x"; }, "agent name"},
        Refused{"NoAgent", [](CellPlan& p) { p.agent.clear(); }, "agent name"},
        Refused{"HomeLabel", [](CellPlan& p) { p.home_label = "x"; }, "home label"},
        Refused{"Hostname", [](CellPlan& p) { p.hostname = "a b"; }, "host name"},
        Refused{"Workdir", [](CellPlan& p) { p.working_directory = "workspace"; }, "working"},
        Refused{"TunnelsAlone",
                [](CellPlan& p) {
                  p.network = NetworkMode::kNone;
                  p.tunnels = true;
                },
                "tunnels without"},
        Refused{"OpenNetworkWithoutAnEngine",
                [](CellPlan& p) {
                  p.network = NetworkMode::kOpen;
                  p.root = RootKind::kHost;
                  p.root_source.clear();
                },
                "an open network"},
        Refused{"Uid0", [](CellPlan& p) { p.uid = 0; }, "never runs as root"},
        Refused{"Gid0", [](CellPlan& p) { p.gid = 0; }, "never runs as root"},
        Refused{"UidMinus1", [](CellPlan& p) { p.uid = ~0U; }, "-1"},
        Refused{"ImageWithoutName", [](CellPlan& p) { p.root_source.clear(); }, "needs a source"},
        Refused{"HostWithSource", [](CellPlan& p) { p.root = RootKind::kHost; }, "takes none"},
        Refused{"RootfsUnopened", [](CellPlan& p) { p.root = RootKind::kRootfs; }, "rootfs"},
        Refused{"Memory0", [](CellPlan& p) { p.limits.memory_bytes = 0; }, "memory limit is 0"},
        Refused{"Pids0", [](CellPlan& p) { p.limits.pids = 0; }, "pids limit is 0"},
        Refused{"Cpu0", [](CellPlan& p) { p.limits.cpu_millis = 0; }, "cpu limit is 0"},
        Refused{"Nofile0", [](CellPlan& p) { p.limits.nofile = 0; }, "nofile limit is 0"},
        Refused{"FileSizeHuge", [](CellPlan& p) { p.limits.file_bytes = ~uint64_t{0}; }, "above"},
        Refused{"IoWeight", [](CellPlan& p) { p.limits.io_weight = kMaxIoWeight + 1; },
                "io weight"},
        Refused{"HalfAnInstruction", [](CellPlan& p) { p.filter = "1234"; }, "filter of 4 bytes"},
        Refused{"CpuSet", [](CellPlan& p) { p.limits.cpu_set = "1,0"; }, "cpu set"},
        Refused{"Pids1", [](CellPlan& p) { p.limits.pids = 1; },
                "the pids limit 1 is too small: the cell itself takes 2"},
        Refused{"Nofile15", [](CellPlan& p) { p.limits.nofile = 15; },
                "the nofile limit 15 is too"},
        Refused{"MemoryHuge", [](CellPlan& p) { p.limits.memory_bytes = ~uint64_t{0}; }, "above"},
        Refused{"RelativeTarget", [](CellPlan& p) { p.mounts[0].target = "agent"; }, "absolute"},
        Refused{"DotDot", [](CellPlan& p) { p.mounts[0].target = "/a/../b"; }, "absolute"},
        Refused{"TrailingSlash", [](CellPlan& p) { p.mounts[0].target = "/agent/"; }, "absolute"},
        Refused{"DoubleSlash", [](CellPlan& p) { p.mounts[0].target = "//agent"; }, "absolute"},
        Refused{"RootTarget", [](CellPlan& p) { p.mounts[0].target = "/"; }, "root itself"},
        Refused{"Nul", [](CellPlan& p) { p.mounts[0].target.push_back('\0'); }, "absolute"},
        Refused{"InProc", [](CellPlan& p) { p.mounts[0].target = "/proc/self"; }, "/proc"},
        Refused{"OnSys", [](CellPlan& p) { p.tmpfs[0].target = "/sys"; }, "/sys"},
        Refused{"InDev", [](CellPlan& p) { p.tmpfs[0].target = "/dev/shm"; }, "/dev"},
        Refused{"Twice", [](CellPlan& p) { p.tmpfs[0].target = "/agent"; },
                "two mounts are to be at '/agent'"},
        Refused{"Source", [](CellPlan& p) { p.mounts[0].source = "x"; }, "the source"},
        Refused{"Inode0", [](CellPlan& p) { p.mounts[0].inode = 0; }, "never opened"},
        Refused{"Tmpfs0", [](CellPlan& p) { p.tmpfs[0].size_bytes = 0; }, "has the size 0"},
        Refused{"TmpfsMode", [](CellPlan& p) { p.tmpfs[0].mode = 010000; }, "a mode"}),
    [](const auto& tested) { return tested.param.name; });

TEST(CellPlanTest, ATargetThatOnlyBeginsLikeProcIsFine) {
  CellPlan plan = SamplePlan();
  plan.mounts[0].target = "/process";
  EXPECT_TRUE(CheckPlan(plan).ok());
}

TEST(CellPlanTest, TwoHundredFiftySixMountsAreTheMost) {
  CellPlan plan = SamplePlan();
  plan.mounts.resize(1);
  while (plan.mounts.size() + plan.tmpfs.size() < kMaxPlannedMounts) {
    plan.mounts.push_back(plan.mounts[0]);
    plan.mounts.back().target = Text("/m", plan.mounts.size());
  }
  EXPECT_TRUE(CheckPlan(plan).ok());
  EXPECT_TRUE(ParsePlan(EncodePlan(plan)).ok());
  plan.mounts.push_back(plan.mounts[0]);
  plan.mounts.back().target = "/one-more";
  EXPECT_THAT(CheckPlan(plan).error().text, HasSubstr("more than 256 mounts"));
}

TEST(CellPlanTest, APathMayHave4095Bytes) {
  std::string path = "/" + std::string(kMaxPathBytes - 1, 'a');
  EXPECT_TRUE(IsNormalPath(path));
  EXPECT_FALSE(IsNormalPath(path + 'a'));
}

}  // namespace
}  // namespace taskcell::cell
