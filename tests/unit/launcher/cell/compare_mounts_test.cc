#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "launcher/base/text.h"
#include "launcher/cell/compare.h"
#include "launcher/cell/engine_additions.h"
#include "launcher/native/host_root.h"
#include "tests/unit/launcher/cell/sample_attestation.h"
#include "tests/unit/launcher/cell/sample_plan.h"

namespace taskcell::cell {
namespace {

CellPlan HostPlan() {
  CellPlan plan = SamplePlan();
  plan.root = RootKind::kHost;
  plan.root_source.clear();
  plan.image_environment.clear();
  plan.mounts.push_back({"/srv/books", "/books", EntryKind::kDirectory, 65024, 7003, false});
  plan.tmpfs.push_back({"/data", 4096, 0500, false, true});
  return plan;
}

CellPlan PlanFor(Engine engine) { return engine == Engine::kNative ? HostPlan() : SamplePlan(); }

std::string Fields(const std::vector<Mismatch>& mismatches) {
  std::string text;
  for (const Mismatch& mismatch : mismatches) text += Describe(mismatch) + "\n";
  return text;
}

struct Deviation {
  const char* name;
  const char* field;
  std::function<void(InsideAttestation&)> change;
  Engine engine = Engine::kNative;
};

class CompareMountsTest : public ::testing::TestWithParam<Deviation> {};

// As a kernel before 5.8 shows it.
TEST(CompareProcTest, HiddenProcessesMayBeSaidByNumber) {
  CellPlan plan = HostPlan();
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  EditMount(seen.inside, "/proc", ",hidepid=invisible", ",hidepid=2");
  EXPECT_EQ(Fields(Compare(plan, Engine::kNative, seen)), "");
}

TEST_P(CompareMountsTest, ADeviationInOneMountIsExactlyThatMismatch) {
  const Deviation& deviation = GetParam();
  CellPlan plan = PlanFor(deviation.engine);
  Attestation seen = MatchingAttestation(plan, deviation.engine);
  std::vector<Mismatch> none = Compare(plan, deviation.engine, seen);
  ASSERT_TRUE(none.empty()) << Fields(none);
  deviation.change(seen.inside);
  std::vector<Mismatch> found = Compare(plan, deviation.engine, seen);
  ASSERT_EQ(found.size(), 1U) << Fields(found);
  EXPECT_EQ(found[0].field, deviation.field);
  EXPECT_FALSE(found[0].is_limit);
}

using Seen = InsideAttestation&;

std::string NameOf(const ::testing::TestParamInfo<Deviation>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Root, CompareMountsTest,
    ::testing::Values(
        Deviation{"Writable", "root.readonly", [](Seen s) { EditMount(s, "/", "ro,", "rw,"); }},
        Deviation{"WritableInAnEngine", "root.readonly",
                  [](Seen s) { EditMount(s, "/", "ro,", "rw,"); }, Engine::kDocker},
        Deviation{"WithoutNosuid", "root.options",
                  [](Seen s) { EditMount(s, "/", ",nosuid", ""); }},
        Deviation{"Shared", "root.propagation",
                  [](Seen s) { EditMount(s, "/", " - ", " shared:1 - "); }, Engine::kDocker},
        Deviation{"OfTheHost", "root.identity", [](Seen s) { EditMount(s, "/", "tmpfs", "ext4"); }},
        Deviation{"AWholeProc", "proc", [](Seen s) { EditMount(s, "/proc", ",subset=pid", ""); }},
        Deviation{"AProcThatShowsOthers", "proc",
                  [](Seen s) { EditMount(s, "/proc", ",hidepid=invisible", ""); }},
        Deviation{"AProcThatOnlyKeepsOthersClosed", "proc",
                  [](Seen s) { EditMount(s, "/proc", ",hidepid=invisible", ",hidepid=1"); }},
        Deviation{"LinksFollowed", "mount:/run/taskcell/init",
                  [](Seen s) { EditMount(s, "/run/taskcell/init", ",nosymfollow", ""); }},
        Deviation{"Twice", "root",
                  [](Seen s) { AddMount(s, "/", "ro", "tmpfs", S_IFDIR | 0755); }}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Planned, CompareMountsTest,
    ::testing::Values(
        Deviation{"Writable", "mount:/agent", [](Seen s) { EditMount(s, "/agent", "ro,", "rw,"); }},
        Deviation{"WritableInAnEngine", "mount:/agent",
                  [](Seen s) { EditMount(s, "/agent", "ro,", "rw,"); }, Engine::kDocker},
        Deviation{"WithoutNosuid", "mount:/agent",
                  [](Seen s) { EditMount(s, "/agent", ",nosuid", ""); }},
        Deviation{"WithoutNodev", "mount:/agent",
                  [](Seen s) { EditMount(s, "/agent", ",nodev", ""); }},
        Deviation{"Inode", "mount:/agent", [](Seen s) { ++SeenAt(s, "/agent").inode; }},
        Deviation{"Device", "mount:/agent", [](Seen s) { ++SeenAt(s, "/agent").device; }},
        Deviation{"Kind", "mount:/agent",
                  [](Seen s) { SeenAt(s, "/agent").mode = S_IFREG | 0444; }},
        Deviation{"KindOfAFile", "mount:/run/taskcell/init",
                  [](Seen s) { SeenAt(s, "/run/taskcell/init").mode = S_IFSOCK | 0444; }},
        Deviation{"NotOpened", "mount:/agent",
                  [](Seen s) { SeenAt(s, "/agent").open_error = ELOOP; }},
        Deviation{"Shared", "mount:/agent",
                  [](Seen s) { EditMount(s, "/agent", " - ", " shared:9 - "); }},
        Deviation{"ReceivesFromTheHost", "mount:/agent",
                  [](Seen s) { EditMount(s, "/agent", " - ", " master:9 - "); }, Engine::kDocker},
        Deviation{"Deleted", "mount:/agent",
                  [](Seen s) { EditMount(s, "/agent", "/snap/agent", "/snap/agent//deleted"); }},
        Deviation{"Stacked", "mount:/agent",
                  [](Seen s) {
                    AddMount(s, "/agent", "ro,nosuid,nodev", "ext4", S_IFDIR | 0555, "/x", 65024,
                             7001);
                  }}),
    NameOf);

void MoveMount(InsideAttestation& seen, const std::string& from, const std::string& to) {
  EditMount(seen, from, " " + from + " ", " " + to + " ");
  SeenAt(seen, from).target = to;
}

// An image's link redirects the engine: the mount is missing where it was planned and one too many
// where it is.
TEST(CompareMountsTest, ATargetIsComparedByteForByte) {
  CellPlan plan = SamplePlan();
  Attestation seen = MatchingAttestation(plan, Engine::kDocker);
  MoveMount(seen.inside, "/agent", "/real/agent");
  std::vector<Mismatch> found = Compare(plan, Engine::kDocker, seen);
  ASSERT_EQ(found.size(), 2U) << Fields(found);
  EXPECT_EQ(found[0].field, "mount:/agent");
  EXPECT_EQ(found[0].found, "not mounted");
  EXPECT_EQ(found[1].field, "mount:/real/agent");
}

INSTANTIATE_TEST_SUITE_P(
    Tmpfs, CompareMountsTest,
    ::testing::Values(
        Deviation{"Larger", "tmpfs:/tmp", [](Seen s) { s.tmpfs[0].size_bytes += 4096; }},
        Deviation{"Smaller", "tmpfs:/tmp", [](Seen s) { s.tmpfs[0].size_bytes -= 4096; }},
        Deviation{"NoSize", "tmpfs:/tmp", [](Seen s) { s.tmpfs.erase(s.tmpfs.begin()); }},
        Deviation{"Mode", "tmpfs:/workspace",
                  [](Seen s) { SeenAt(s, "/workspace").mode = S_IFDIR | 0755; }},
        Deviation{"Type", "tmpfs:/tmp", [](Seen s) { EditMount(s, "/tmp", "tmpfs", "ext4"); }},
        Deviation{"Part", "tmpfs:/tmp", [](Seen s) { EditMount(s, "/tmp", " / ", " /x "); }},
        Deviation{"NotOpened", "tmpfs:/tmp", [](Seen s) { SeenAt(s, "/tmp").open_error = ELOOP; }},
        Deviation{"WithoutNosuid", "tmpfs:/tmp",
                  [](Seen s) { EditMount(s, "/tmp", ",nosuid", ""); }},
        Deviation{"WithoutNodev", "tmpfs:/tmp", [](Seen s) { EditMount(s, "/tmp", ",nodev", ""); }},
        Deviation{"Noexec", "tmpfs:/tmp",
                  [](Seen s) { EditMount(s, "/tmp", ",nodev", ",nodev,noexec"); }},
        Deviation{"Exec", "tmpfs:/data", [](Seen s) { EditMount(s, "/data", ",noexec", ""); }},
        Deviation{"Writable", "tmpfs:/data", [](Seen s) { EditMount(s, "/data", "ro,", "rw,"); }},
        Deviation{"ReadOnly", "tmpfs:/tmp", [](Seen s) { EditMount(s, "/tmp", "rw,", "ro,"); }},
        Deviation{"Shared", "tmpfs:/tmp",
                  [](Seen s) { EditMount(s, "/tmp", " - ", " shared:9 - "); }},
        Deviation{"Stacked", "tmpfs:/tmp",
                  [](Seen s) { AddMount(s, "/tmp", "rw", "tmpfs", S_IFDIR | 01777); }}),
    NameOf);

TEST(CompareMountsTest, AnImagesOwnModeIsTakenWhereTheOwnerCanStillUseTheTmpfs) {
  CellPlan plan = SamplePlan();
  plan.tmpfs.push_back({"/cover", 4096, 0555, false, true});
  auto found = [&](const char* target, uint32_t mode) {
    Attestation seen = MatchingAttestation(plan, Engine::kDocker);
    SeenAt(seen.inside, target).mode = S_IFDIR | mode;
    return Fields(Compare(plan, Engine::kDocker, seen));
  };
  EXPECT_EQ(found("/workspace", 0755), "");
  EXPECT_EQ(found("/workspace", 01777), "");
  EXPECT_EQ(found("/cover", 0), "") << "what is empty and read-only needs no mode";
  EXPECT_NE(found("/workspace", 0577), "");
  EXPECT_NE(found("/workspace", 0077), "");
}

TEST(CompareMountsTest, ATmpfsIsRoundedUpToAPage) {
  CellPlan plan = HostPlan();
  plan.tmpfs[0].size_bytes += 1;
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  EXPECT_EQ(Compare(plan, Engine::kNative, seen).size(), 1U);  // no half pages
  seen.inside.tmpfs[0].size_bytes += 4095;
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
}

INSTANTIATE_TEST_SUITE_P(
    Other, CompareMountsTest,
    ::testing::Values(
        Deviation{"Extra", "mount:/host",
                  [](Seen s) { AddMount(s, "/host", "ro,nosuid,nodev", "ext4", S_IFDIR | 0755); }},
        Deviation{
            "ExtraInAnEngine", "mount:/var/run/docker.sock",
            [](Seen s) { AddMount(s, "/var/run/docker.sock", "ro", "tmpfs", S_IFSOCK | 0666); },
            Engine::kDocker},
        Deviation{"BelowAMountOfAnEngine", "mount:/agent/secret",
                  [](Seen s) { AddMount(s, "/agent/secret", "ro", "ext4", S_IFDIR | 0755); },
                  Engine::kDocker},
        Deviation{
            "WritableBelowAReadOnlyMount", "mount:/books/sub",
            [](Seen s) { AddMount(s, "/books/sub", "rw,nosuid,nodev", "ext4", S_IFDIR | 0755); }},
        Deviation{
            "BelowTheAgentDirectory", "mount:/agent/sub",
            [](Seen s) { AddMount(s, "/agent/sub", "ro,nosuid,nodev", "ext4", S_IFDIR | 0755); }},
        Deviation{"SecondProc", "mount:/proc",
                  [](Seen s) { AddMount(s, "/proc", "rw", "proc", S_IFDIR | 0555); }},
        Deviation{"SharedDev", "mount:/dev",
                  [](Seen s) { EditMount(s, "/dev", " - ", " shared:9 - "); }},
        Deviation{"TreeOutsideAHostRoot", "mount:/usr",
                  [](Seen s) { AddMount(s, "/usr", "ro,nosuid,nodev", "ext4", S_IFDIR | 0755); },
                  Engine::kDocker},
        Deviation{"NotLookedAt", "mountinfo", [](Seen s) { s.mounts.pop_back(); }},
        Deviation{"LookedAtAnother", "mountinfo",
                  [](Seen s) { std::swap(s.mounts[0], s.mounts[1]); }},
        Deviation{"Malformed", "mountinfo", [](Seen s) { s.mountinfo += "x\n"; }},
        Deviation{"NotTheNullDevice", "mount:/proc/keys",
                  [](Seen s) { EditMount(s, "/proc/keys", "/null", "/kmsg"); }},
        Deviation{"AnotherPartOfProc", "mount:/proc/sys",
                  [](Seen s) { EditMount(s, "/proc/sys", " /sys ", " /1 "); }}),
    NameOf);

TEST(CompareMountsTest, WhatTheHostMountsBelowADirectoryComesWithIt) {
  CellPlan plan = HostPlan();
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  AddMount(seen.inside, "/books/sub", "ro,nosuid,nodev", "ext4", S_IFDIR | 0755);
  EXPECT_EQ(Fields(Compare(plan, Engine::kNative, seen)), "");
}

TEST(CompareMountsTest, TheRootDirectoryIsTheOneThatWasOpened) {
  CellPlan plan = HostPlan();
  plan.root = RootKind::kRootfs;
  plan.root_source = "/srv/rootfs";
  plan.root_device = 65024;
  plan.root_inode = 99;
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  EXPECT_EQ(Fields(Compare(plan, Engine::kNative, seen)), "");
  SeenAt(seen.inside, "/").inode = 98;
  std::vector<Mismatch> found = Compare(plan, Engine::kNative, seen);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].field, "root.identity");
}

// A mount exactly as a row allows it.
struct Sample {
  MountInfoLine line;
  MountSeen seen;
};

Sample SampleOf(const Addition& addition) {
  std::string target(addition.target);
  if (target.ends_with("/*")) target.replace(target.size() - 1, 1, "x");
  Sample sample;
  sample.line.mount_point = target;
  sample.line.root = "/";
  sample.line.options = addition.required;
  sample.line.type = addition.types.empty()
                         ? "ext4"
                         : std::string(addition.types.substr(0, addition.types.find(',')));
  sample.seen.mode = S_IFDIR | 0755;
  if (addition.kind == AdditionKind::kMask) {
    sample.line.type = "tmpfs";
    sample.line.options = "ro";
  }
  if (addition.kind == AdditionKind::kPart && target.starts_with("/proc")) {
    sample.line.root = target.substr(5);
  }
  if (addition.kind == AdditionKind::kFile) sample.seen.mode = S_IFREG | 0644;
  if (addition.kind == AdditionKind::kDevice) {
    sample.seen.mode = S_IFCHR | 0666;
    sample.line.root = target.substr(target.rfind('/'));
  }
  return sample;
}

class EngineAdditionsTest : public ::testing::TestWithParam<Engine> {};

TEST_P(EngineAdditionsTest, EachRowAllowsItsMountAndNothingLess) {
  for (const Addition& addition : EngineAdditions(GetParam(), RootKind::kHost)) {
    SCOPED_TRACE(std::string(addition.target));
    Sample sample = SampleOf(addition);
    EXPECT_EQ(WhyNotAddition(addition, sample.line, sample.seen), "");
    EXPECT_EQ(FindAddition(GetParam(), RootKind::kHost, sample.line.mount_point), &addition);
    if (!addition.types.empty()) {
      Sample other = sample;
      other.line.type = "fuse";
      EXPECT_NE(WhyNotAddition(addition, other.line, other.seen), "");
    }
    for (std::string_view option : Split(addition.required, ',')) {
      if (option.empty()) continue;
      Sample without = sample;
      std::string kept;
      for (std::string_view each : Split(addition.required, ',')) {
        if (each != option) kept += Text(kept.empty() ? "" : ",", each);
      }
      without.line.options = kept;
      EXPECT_NE(WhyNotAddition(addition, without.line, without.seen), "") << option;
    }
    Sample socket = sample;
    socket.seen.mode = S_IFSOCK | 0666;
    socket.line.root = "/elsewhere";
    bool any_part = addition.kind == AdditionKind::kPart && !addition.target.starts_with("/proc");
    EXPECT_EQ(WhyNotAddition(addition, socket.line, socket.seen).empty(), any_part);
  }
}

// What runc binds from the host's /dev, and only that, may still receive what is mounted there.
TEST_P(EngineAdditionsTest, OnlyABoundDeviceMayFollowTheHostAndNoneMaySendToIt) {
  for (const Addition& addition : EngineAdditions(GetParam(), RootKind::kHost)) {
    SCOPED_TRACE(std::string(addition.target));
    Sample sample = SampleOf(addition);
    sample.line.optional_fields = {"master:10"};
    bool device = addition.kind == AdditionKind::kDevice;
    bool follows = device && GetParam() != Engine::kNative;
    EXPECT_EQ(WhyNotAddition(addition, sample.line, sample.seen), follows ? "" : "master:10");
    if (addition.kind == AdditionKind::kMask) {
      sample.seen.mode = S_IFCHR | 0666;
      sample.line.root = "/null";
      EXPECT_EQ(WhyNotAddition(addition, sample.line, sample.seen).empty(), addition.may_follow);
      EXPECT_TRUE(!addition.may_follow || GetParam() != Engine::kNative);
    }
    for (const char* more : {"shared:11", "propagate_from:12"}) {
      sample.line.optional_fields = {"master:10", more};
      EXPECT_EQ(WhyNotAddition(addition, sample.line, sample.seen), "master:10");
    }
    sample.line.optional_fields = {"shared:11"};
    EXPECT_EQ(WhyNotAddition(addition, sample.line, sample.seen), "shared:11");
  }
}

TEST_P(EngineAdditionsTest, ADeviceIsTheOneOfThatName) {
  for (const Addition& addition : EngineAdditions(GetParam(), RootKind::kHost)) {
    if (addition.kind != AdditionKind::kDevice) continue;
    Sample sample = SampleOf(addition);
    sample.line.root = "/dev" + sample.line.root;  // of a host whose /dev is no mount
    EXPECT_EQ(WhyNotAddition(addition, sample.line, sample.seen), "");
    sample.line.root = "/kmsg";
    EXPECT_NE(WhyNotAddition(addition, sample.line, sample.seen), "") << addition.target;
  }
}

// By name: a row that is lost is a cell that is refused.
TEST(EngineAdditionsTest, RootlessEnginesBindTheSixDevicesAndMaskFilesWithOneOfThem) {
  for (Engine engine : {Engine::kDocker, Engine::kPodman}) {
    for (const char* target : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                               "/dev/tty", "/proc/kcore", "/proc/keys", "/proc/timer_list"}) {
      const Addition* row = FindAddition(engine, RootKind::kImage, target);
      ASSERT_NE(row, nullptr) << target;
      EXPECT_TRUE(row->may_follow) << target;
    }
    EXPECT_EQ(FindAddition(engine, RootKind::kImage, "/dev/kmsg"), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, EngineAdditionsTest,
                         ::testing::Values(Engine::kNative, Engine::kDocker, Engine::kPodman));

TEST(EngineAdditionsTest, AMaskIsTheNullDeviceOrAnEmptyReadOnlyTmpfs) {
  const Addition* mask = FindAddition(Engine::kDocker, RootKind::kImage, "/proc/kcore");
  ASSERT_NE(mask, nullptr);
  MountInfoLine line;
  line.type = "tmpfs";
  line.root = "/null";
  line.options = "rw,nosuid";
  MountSeen device;
  device.mode = S_IFCHR | 0666;
  EXPECT_EQ(WhyNotAddition(*mask, line, device), "");
  line.root = "/kmsg";
  EXPECT_NE(WhyNotAddition(*mask, line, device), "");
  MountSeen directory;
  directory.mode = S_IFDIR | 0755;
  line.root = "/";
  EXPECT_NE(WhyNotAddition(*mask, line, directory), "");  // rw
  line.options = "ro,relatime";
  EXPECT_EQ(WhyNotAddition(*mask, line, directory), "");
  line.type = "ext4";
  EXPECT_NE(WhyNotAddition(*mask, line, directory), "");
}

TEST(EngineAdditionsTest, AWritableUnifiedHierarchyIsNoAddition) {
  const Addition* cgroup = FindAddition(Engine::kDocker, RootKind::kImage, "/sys/fs/cgroup");
  ASSERT_NE(cgroup, nullptr);
  MountInfoLine line;
  line.root = "/";
  line.options = "rw,nosuid,nodev,noexec";
  line.type = "tmpfs";  // v1: the directory of the hierarchies
  EXPECT_EQ(WhyNotAddition(*cgroup, line, MountSeen()), "");
  line.type = "cgroup2";
  EXPECT_NE(WhyNotAddition(*cgroup, line, MountSeen()), "");
  line.options = "ro,nosuid,nodev,noexec";
  EXPECT_EQ(WhyNotAddition(*cgroup, line, MountSeen()), "");
}

TEST(EngineAdditionsTest, TreesOfTheHostBelongToAHostRootAlone) {
  EXPECT_NE(FindAddition(Engine::kNative, RootKind::kHost, "/usr"), nullptr);
  EXPECT_EQ(FindAddition(Engine::kNative, RootKind::kRootfs, "/usr"), nullptr);
  EXPECT_EQ(FindAddition(Engine::kDocker, RootKind::kImage, "/usr"), nullptr);
  EXPECT_EQ(FindAddition(Engine::kDocker, RootKind::kImage, "/procx"), nullptr);
  EXPECT_EQ(FindAddition(Engine::kDocker, RootKind::kImage, "/sys/fs/cgroup/"), nullptr);
}

// The launcher takes these from the host; the table has to know them.
TEST(EngineAdditionsTest, EveryDirectoryOfTheHostRootHasItsRow) {
  for (std::string_view name : native::kHostEtcDirectories) {
    EXPECT_NE(FindAddition(Engine::kNative, RootKind::kHost, Text("/etc/", name)), nullptr) << name;
  }
}

// Real cells, as their own /proc/self/mountinfo showed them.
struct RealCell {
  const char* file;
  Engine engine;
  RootKind root;
  std::vector<std::string> planned;  // what no table has: the root and the plan's own
};

class RealCellTest : public ::testing::TestWithParam<RealCell> {};

TEST_P(RealCellTest, EveryMountIsPlannedOrHasItsRow) {
  std::ifstream file(Text(TASKCELL_TEST_DATA "/mountinfo/", std::string_view(GetParam().file)));
  std::stringstream text;
  text << file.rdbuf();
  std::vector<MountInfoLine> lines = ParseMountInfo(text.str()).value();
  ASSERT_GT(lines.size(), 20U);
  std::vector<std::string> unknown;
  for (const MountInfoLine& line : lines) {
    const Addition* row = FindAddition(GetParam().engine, GetParam().root, line.mount_point);
    if (row == nullptr) {
      unknown.push_back(line.mount_point);
      continue;
    }
    MountSeen seen;
    seen.mode = line.root == "/null" ? S_IFCHR | 0666U : S_IFDIR | 0755U;
    if (row->kind == AdditionKind::kFile) seen.mode = S_IFREG | 0644;
    if (row->kind == AdditionKind::kDevice) seen.mode = S_IFCHR | 0666;
    EXPECT_EQ(WhyNotAddition(*row, line, seen), "") << line.mount_point;
  }
  EXPECT_EQ(unknown, GetParam().planned);
}

INSTANTIATE_TEST_SUITE_P(Each, RealCellTest,
                         ::testing::Values(RealCell{"docker-20.10-hybrid.txt",
                                                    Engine::kDocker,
                                                    RootKind::kImage,
                                                    {"/", "/agent", "/tmp", "/workspace",
                                                     "/run/taskcell/init"}},
                                           RealCell{"docker-20.10-rootless.txt",
                                                    Engine::kDocker,
                                                    RootKind::kImage,
                                                    {"/", "/dev/console"}},
                                           RealCell{"native-host-root.txt",
                                                    Engine::kNative,
                                                    RootKind::kHost,
                                                    {"/", "/tmp", "/workspace"}}));

}  // namespace
}  // namespace taskcell::cell
