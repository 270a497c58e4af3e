#include "launcher/cgroup/layout.h"

#include <gtest/gtest.h>

namespace taskcell::cgroup {
namespace {

// Taken from a Debian 12 machine: every controller on v1 but hugetlb.
constexpr char kHybridCgroup[] =
    "9:name=systemd:/\n8:pids:/\n7:blkio:/\n4:memory:/jobs/77\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/"
    "\n0::/\n";
constexpr char kHybridMounts[] =
    "23 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(LayoutTest, HybridHostKeepsItsControllersOnV1) {
  Layout layout = ParseLayout(kHybridCgroup, kHybridMounts).value();
  EXPECT_EQ(layout.mode, Mode::kHybrid);
  const Hierarchy* memory = layout.Find(Controller::kMemory);
  ASSERT_NE(memory, nullptr);
  EXPECT_FALSE(memory->unified);
  EXPECT_EQ(memory->mount_point, "/sys/fs/cgroup/memory");
  EXPECT_EQ(memory->own_path, "/jobs/77");
  EXPECT_EQ(memory->minor, 32U);
  EXPECT_FALSE(memory->read_only);
  EXPECT_EQ(BelowMount(*memory, memory->own_path), "jobs/77");
  EXPECT_EQ(layout.Find(Controller::kPids)->mount_point, "/sys/fs/cgroup/pids");
  EXPECT_EQ(layout.Find("cpuacct")->mount_point, "/sys/fs/cgroup/cpuacct");
  EXPECT_EQ(layout.Find("hugetlb")->mount_point, "/sys/fs/cgroup/unified");
}

TEST(LayoutTest, UnifiedHostHasEverythingInOnePlace) {
  Layout layout =
      ParseLayout("0::/user.slice/user-1500.slice/session-48.scope\n",
                  "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 "
                  "cgroup2 rw,nsdelegate,memory_recursiveprot\n")
          .value();
  EXPECT_EQ(layout.mode, Mode::kV2);
  EXPECT_EQ(layout.Find(Controller::kMemory), layout.Find(Controller::kCpu));
  EXPECT_TRUE(layout.Find(Controller::kCpu)->unified);
}

TEST(LayoutTest, LimitsAreAllOnV1OnlyWhereEachHasAHierarchyOfItsOwnKind) {
  auto all = [](std::string_view text) { return AllOnV1(ParseMemberships(text).value()); };
  EXPECT_TRUE(all(kHybridCgroup));
  EXPECT_TRUE(all("2:cpu,cpuacct:/\n1:memory,pids:/\n0::/\n"));
  EXPECT_FALSE(all("8:pids:/\n4:memory:/\n2:cpuacct:/\n0::/\n"));
  EXPECT_FALSE(all("1:name=systemd:/\n0::/user.slice\n"));
  EXPECT_FALSE(all(""));
}

TEST(LayoutTest, CoMountedControllersAreOneHierarchy) {
  Layout layout =
      ParseLayout("4:cpu,cpuacct:/a\n3:pids:/\n2:memory:/\n",
                  "1 0 0:1 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                  "2 0 0:2 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                  "3 0 0:3 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
          .value();
  EXPECT_EQ(layout.mode, Mode::kV1);
  EXPECT_EQ(layout.Find(Controller::kCpu), layout.Find("cpuacct"));
  EXPECT_EQ(layout.Find(Controller::kCpu)->mount_point, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_TRUE(layout.Find(Controller::kMemory)->read_only);
}

TEST(LayoutTest, CpuIsNotFoundInCpusetOrCpuacct) {
  Layout layout =
      ParseLayout("2:cpuset:/\n1:cpuacct:/\n", "1 0 0:1 / /c/cpuset rw - cgroup cgroup rw,cpuset\n")
          .value();
  EXPECT_EQ(layout.Find(Controller::kCpu), nullptr);
  EXPECT_EQ(layout.Find("cpuacct")->mount_point, "");
}

TEST(LayoutTest, NamedHierarchyAloneIsNoV1Host) {
  Layout layout = ParseLayout("1:name=systemd:/\n0::/\n",
                              "1 0 0:1 / /c/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
                              "2 0 0:2 / /c rw - cgroup2 cgroup2 rw\n")
                      .value();
  EXPECT_EQ(layout.mode, Mode::kV2);
}

TEST(LayoutTest, NothingMountedIsNone) {
  EXPECT_EQ(ParseLayout("0::/\n", "1 0 0:1 / / rw - ext4 /dev/root rw\n").value().mode,
            Mode::kNone);
}

// A Docker container on a v1 host: the mount shows the container's own cgroup only.
TEST(LayoutTest, MountRootIsTakenOffThePath) {
  Layout layout =
      ParseLayout("4:memory:/docker/abc/inner\n",
                  "9 8 0:3 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
          .value();
  const Hierarchy& memory = *layout.Find(Controller::kMemory);
  EXPECT_EQ(BelowMount(memory, "/docker/abc/inner"), "inner");
  EXPECT_EQ(BelowMount(memory, "/docker/abc"), "");
  EXPECT_EQ(BelowMount(memory, "/docker/abcd"), std::nullopt);
  EXPECT_EQ(BelowMount(memory, "/docker"), std::nullopt);
  EXPECT_EQ(BelowMount(memory, "/"), std::nullopt);
}

TEST(LayoutTest, PathOutsideTheNamespaceIsNotBelowTheMount) {
  Layout layout = ParseLayout("0::/\n", "2 0 0:2 / /c rw - cgroup2 cgroup2 rw\n").value();
  EXPECT_EQ(BelowMount(layout.hierarchies[0], "/../sibling"), std::nullopt);
  EXPECT_EQ(BelowMount(layout.hierarchies[0], "/..a/b"), "..a/b");
}

TEST(LayoutTest, MountThatShowsTheOwnCgroupWins) {
  constexpr char kMounts[] =
      "1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "2 0 0:1 /docker/abc /srv/view rw - cgroup cgroup rw,memory\n";
  EXPECT_EQ(ParseLayout("4:memory:/jobs\n", kMounts).value().hierarchies[0].mount_point,
            "/sys/fs/cgroup/memory");
  EXPECT_EQ(ParseLayout("4:memory:/docker/abc/x\n", kMounts).value().hierarchies[0].mount_point,
            "/srv/view");
}

TEST(LayoutTest, EscapedMountPointIsUndone) {
  Layout layout = ParseLayout("0::/\n", "2 0 0:2 / /c\\040d rw - cgroup2 cgroup2 rw\n").value();
  EXPECT_EQ(layout.hierarchies[0].mount_point, "/c d");
}

TEST(LayoutTest, MalformedMembershipsAreRefused) {
  EXPECT_TRUE(ParseMemberships("4:memory:/a:b\n").ok());  // a colon in a name is the path's own
  for (const char* line : {"4:memory", "memory:/", ":memory:/", "4:memory:a", "-4:memory:/"}) {
    EXPECT_FALSE(ParseMemberships(line).ok()) << line;
  }
}

TEST(LayoutTest, MembershipsHaveASizeLimit) {
  std::string line = "0::/";
  line.append(kMaxProcCgroupBytes - line.size(), 'x');
  EXPECT_TRUE(ParseMemberships(line).ok());
  EXPECT_FALSE(ParseMemberships(line + "x").ok());
}

TEST(LayoutTest, OwnFilesAreRead) {
  Layout layout = ReadLayout().value();
  EXPECT_FALSE(layout.hierarchies.empty());
}

}  // namespace
}  // namespace taskcell::cgroup
