#include "tests/unit/launcher/cgroup/diagnosed_host.h"

namespace taskcell::cgroup {
namespace {

using test::MemoryHost;
using testing::HasSubstr;

// A container with its own cgroup namespace: the root of what is mounted is no root cgroup.
class Container : public testing::Test {
 protected:
  void Enter(uint32_t uid, std::string_view options, std::string_view controllers, uint32_t owner) {
    host.Process(uid, "0::/\n",
                 Text("8 7 0:26 / /sys/fs/cgroup ", options, " - cgroup2 cgroup rw,nsdelegate\n"));
    host.Cgroup(kRoot, owner, controllers, "", "domain", "1 4242");
  }
  MemoryHost host;
};

// E13 and E40.
TEST_F(Container, ReadOnlyMountIsWhoeverStartedIt) {
  Enter(kUser, "ro,nosuid", kAllOn, 0);
  host.Put(kRoot + "/memory.max", "1073741824\n");
  host.Put(kRoot + "/pids.max", "64\n");
  EXPECT_EQ(States(host), "no no no");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "outer");
  EXPECT_THAT(memory.reason, HasSubstr("read-only"));
  EXPECT_EQ(memory.file, kRoot);
  EXPECT_EQ(memory.value, "mounted read-only");
  EXPECT_EQ(memory.outer_limit, 1073741824U);
  EXPECT_EQ(Ask(host, Controller::kPids).outer_limit, 64U);
}

// E39.
TEST_F(Container, MissingControllerWasNotPassedIn) {
  Enter(0, "rw", "memory cpu", 0);
  Diagnosis pids = Ask(host, Controller::kPids);
  EXPECT_DIAGNOSIS(pids, "no", "outer");
  EXPECT_EQ(Name(Ask(host, Controller::kMemory).state), "yes");
}

// E12: root in a container whose root cgroup holds processes moves them aside.
TEST_F(Container, RootMovesTheProcessesOfItsRootAside) {
  Enter(0, "rw", kAllOn, 0);
  EXPECT_EQ(States(host), "yes yes yes");
  host.Put("/proc/self/cgroup", "0::/init\n");
  host.Cgroup(kRoot + "/init", 0, "", "");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "user");
  EXPECT_EQ(memory.file, kRoot + "/cgroup.procs");
  host.Cgroup(kRoot, 0, kAllOn, "", "domain threaded", "1");
  EXPECT_THAT(Ask(host, Controller::kMemory).reason, HasSubstr("threaded"));
}

TEST_F(Container, OrdinaryUserOrUnmappedOwnerHasNothing) {
  Enter(kUser, "rw", kAllOn, 0);
  EXPECT_DIAGNOSIS(Ask(host, Controller::kMemory), "no", "outer");
  Enter(0, "rw", kAllOn, 65534);
  host.Put("/proc/self/uid_map", "0 1000 1\n1 100000 65536\n");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kMemory), "no", "outer");
}

TEST_F(Container, OwnCgroupOutsideOfTheNamespaceIsNotVisible) {
  Enter(kUser, "rw", kAllOn, kUser);
  host.Put("/proc/self/cgroup", "0::/../../elsewhere\n");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kMemory), "no", "outer");
}

// E37: a hardened unit of the host itself.
TEST_F(Container, ReadOnlyMountOfASystemUnitIsItsSetting) {
  host.Process(kUser, "0::/system.slice/gateway.service\n",
               "8 7 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  host.Cgroup(kRoot, 0, kAllOn, kAllOn, "-");
  host.Cgroup(kRoot + "/system.slice", 0, kAllOn, kAllOn);
  host.Cgroup(kRoot + "/system.slice/gateway.service", kUser, kAllOn, "");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_THAT(memory.fix, HasSubstr("ProtectControlGroups=no"));
  EXPECT_THAT(memory.fix, HasSubstr("gateway.service.d"));
}

}  // namespace
}  // namespace taskcell::cgroup
