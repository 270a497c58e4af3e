#include <cerrno>

#include "tests/unit/launcher/cgroup/diagnosed_host.h"

namespace taskcell::cgroup {
namespace {

using test::MemoryHost;
using testing::HasSubstr;

// E17 and E18: v1 controllers, with and without a unified hierarchy beside them.
class V1Host : public testing::Test {
 protected:
  void SetUp() override {
    host.Process(kUser, "8:pids:/\n4:memory:/jobs/77\n1:cpu,cpuacct:/\n0::/\n",
                 "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                 "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                 "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                 "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                 "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    host.Put("/etc/passwd", "agent1:x:1500:1500::/home/a:/bin/sh\n");
    host.Put(kRoot + "/memory/jobs/77/memory.limit_in_bytes", "9223372036854771712\n");
    host.Directory(kRoot + "/pids");
    host.Directory(kRoot + "/cpu");
    host.Cgroup(kRoot + "/unified", 0, "hugetlb", "", "-", "1 4242");
  }
  void Prepare(const std::string& below, uint32_t owner, uint32_t mode = 0755) {
    host.V1Cgroup(kRoot + "/" + below, below.substr(0, below.find('/')), owner, mode);
  }
  MemoryHost host;
};

TEST_F(V1Host, IsTheAdministratorsToHandOverOrToLeave) {
  EXPECT_EQ(States(host), "no no no");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_EQ(memory.file, kRoot + "/memory/jobs/77");
  EXPECT_EQ(memory.value, "uid 0");
  EXPECT_FALSE(memory.outer_limit.has_value());
  EXPECT_THAT(memory.fix, HasSubstr("systemd.unified_cgroup_hierarchy=1"));
  EXPECT_THAT(memory.fix, HasSubstr("taskcell-probe delegate --user agent1 --apply"));
  for (Controller each : kControllers)  // one fix for all hierarchies
    EXPECT_EQ(Ask(host, each).fix, memory.fix);
}

TEST_F(V1Host, PreparedDirectoryOfTheUsersOwnIsYes) {
  Prepare("memory/taskcell/uid-1500", kUser);
  EXPECT_EQ(States(host), "yes no no");
  EXPECT_EQ(Ask(host, Controller::kMemory).place, kRoot + "/memory/taskcell/uid-1500");
  Prepare("pids/taskcell/uid-1500", kUser, 0775);
  Prepare("cpu/taskcell/uid-1500", 0);
  EXPECT_EQ(States(host), "yes no no");
  EXPECT_THAT(Ask(host, Controller::kPids).reason, HasSubstr("other users may write"));
  EXPECT_EQ(Ask(host, Controller::kPids).value, "uid 1500, writable by others");
  Prepare("pids/taskcell/uid-1500", kUser);
  Prepare("cpu/taskcell/uid-1500", kUser);
  EXPECT_EQ(States(host), "yes yes yes");
}

// A directory may be writable and limit nothing: the file decides.
TEST_F(V1Host, DirectoryWithoutItsLimitFileIsNotYes) {
  const std::string prepared = "/taskcell/uid-1500";
  for (const char* each : {"memory", "pids", "cpu"}) Prepare(each + prepared, kUser);
  host.Remove(kRoot + "/memory" + prepared + "/memory.limit_in_bytes");
  host.Remove(kRoot + "/pids" + prepared + "/pids.max");
  host.Remove(kRoot + "/cpu" + prepared + "/cpu.cfs_quota_us");
  EXPECT_EQ(States(host), "unknown unknown no");
  EXPECT_EQ(Ask(host, Controller::kMemory).file,
            kRoot + "/memory" + prepared + "/memory.limit_in_bytes");
  EXPECT_THAT(Ask(host, Controller::kPids).reason, HasSubstr("pids.max is missing"));
  Diagnosis cpu = Ask(host, Controller::kCpu);
  EXPECT_DIAGNOSIS(cpu, "no", "kernel");
  EXPECT_THAT(cpu.reason, HasSubstr("cpu.cfs_quota_us"));
  EXPECT_THAT(cpu.fix, HasSubstr("CONFIG_CFS_BANDWIDTH"));
  EXPECT_EQ(cpu.place, "");

  Prepare("memory" + prepared, kUser);
  host.Forbid(kRoot + "/memory" + prepared + "/memory.limit_in_bytes", EACCES);
  EXPECT_EQ(Name(Ask(host, Controller::kMemory).state), "unknown");
}

TEST_F(V1Host, OwnCgroupWithoutItsLimitFileIsNotYes) {
  host.Process(kUser, "8:pids:/own\n4:memory:/jobs/77\n1:cpu,cpuacct:/own\n0::/\n",
               host.Read("/proc/self/mountinfo", 65536).text);
  host.Own(kRoot + "/memory/jobs/77", kUser);
  for (const char* each : {"pids/own", "cpu/own"}) Prepare(each, kUser);
  EXPECT_EQ(States(host), "yes yes yes");
  host.Remove(kRoot + "/memory/jobs/77/memory.limit_in_bytes");
  host.Remove(kRoot + "/pids/own/pids.max");
  host.Remove(kRoot + "/cpu/own/cpu.cfs_quota_us");
  EXPECT_EQ(States(host), "unknown unknown no");
}

TEST_F(V1Host, OwnCgroupOfTheUsersIsYes) {
  host.Own(kRoot + "/memory/jobs/77", kUser);
  EXPECT_EQ(States(host), "yes no no");
}

TEST_F(V1Host, RootMakesItsOwn) {
  host.Process(0, "8:pids:/\n4:memory:/jobs/77\n1:cpu,cpuacct:/\n0::/\n",
               host.Read("/proc/self/mountinfo", 65536).text);
  EXPECT_EQ(States(host), "yes yes yes");
}

TEST_F(V1Host, OuterLimitsAreFoundAtTheMountOfAPod) {
  const std::string pod = "/kubepods/burstable/pod0a1b/9c8d";
  host.Put("/proc/self/cgroup",
           Text("4:memory:", pod, "\n3:pids:", pod, "\n2:cpu,cpuacct:", pod, "\n"));
  host.Put("/proc/self/mountinfo",
           Text("396 394 0:21 ", pod,
                " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n397 394 0:22 ", pod,
                " /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"));
  host.Put(kRoot + "/memory/memory.limit_in_bytes", "536870912\n");
  host.Put(kRoot + "/pids/pids.max", "100\n");
  EXPECT_EQ(States(host), "no no no");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "outer");
  EXPECT_EQ(memory.outer_limit, 536870912U);
  EXPECT_EQ(memory.outer_file, kRoot + "/memory/memory.limit_in_bytes");
  EXPECT_EQ(Ask(host, Controller::kPids).outer_limit, 100U);
  EXPECT_DIAGNOSIS(Ask(host, Controller::kCpu), "no", "outer");
}

}  // namespace
}  // namespace taskcell::cgroup
