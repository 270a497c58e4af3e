#include <cerrno>

#include "tests/unit/launcher/cgroup/diagnosed_host.h"

namespace taskcell::cgroup {
namespace {

using test::kUnifiedMount;
using test::MemoryHost;
using testing::HasSubstr;
using testing::Not;

// A host of the unified hierarchy on which everything is as it should be: a user's scope.
class UnifiedHost : public testing::Test {
 protected:
  void SetUp() override {
    host.Process(kUser, "0::/user.slice/user-1500.slice/user@1500.service/app.slice/t.scope\n",
                 kUnifiedMount);
    host.Put("/etc/passwd", "root:x:0:0::/:/bin/sh\nagent1:x:1500:1500::/home/a:/bin/sh\n");
    host.Directory("/run/systemd/system");
    host.Socket("/run/user/1500/bus", kUser);
    host.Cgroup(kRoot, 0, "cpuset cpu io memory hugetlb pids", "cpu io memory pids", "-", "1");
    host.Cgroup(kRoot + "/user.slice", 0, "cpu io memory pids", kAllOn);
    host.Cgroup(kSlice, 0, kAllOn, kAllOn);
    host.Cgroup(kManager, kUser, kAllOn, kAllOn);
    host.Cgroup(kManager + "/app.slice", kUser, kAllOn, kAllOn);
    host.Cgroup(kScope, kUser, kAllOn, "", "domain", "4242");
  }
  void Move(const std::string& own_path) { host.Put("/proc/self/cgroup", "0::" + own_path + "\n"); }

  const std::string kScope = kManager + "/app.slice/t.scope";
  MemoryHost host;
};

TEST_F(UnifiedHost, EverythingDelegatedIsYes) {
  EXPECT_EQ(States(host), "yes yes yes");
  EXPECT_EQ(Ask(host, Controller::kCpu).place, kScope);
}

// E01: the controller is not in the user manager's delegation.
TEST_F(UnifiedHost, ControllerNotDelegatedToTheUserManagerIsTheAdministrators) {
  host.Cgroup(kRoot + "/user.slice", 0, "cpu io memory pids", "memory pids");
  for (const std::string& each : {kSlice, kManager, kManager + "/app.slice"})
    host.Cgroup(each, each == kSlice ? 0 : kUser, "memory pids", "memory pids");
  host.Cgroup(kScope, kUser, "memory pids", "", "domain", "4242");
  EXPECT_EQ(States(host), "yes yes no");
  Diagnosis cpu = Ask(host, Controller::kCpu);
  EXPECT_DIAGNOSIS(cpu, "no", "admin");
  EXPECT_EQ(cpu.level, kRoot + "/user.slice");
  EXPECT_EQ(cpu.file, kRoot + "/user.slice/cgroup.subtree_control");
  EXPECT_THAT(cpu.reason, HasSubstr("not delegated to the user manager"));
  EXPECT_THAT(cpu.fix, HasSubstr("taskcell-probe delegate --user agent1 --apply"));
  EXPECT_THAT(cpu.fix, HasSubstr("systemctl restart user@1500.service"));
  EXPECT_THAT(cpu.fix, Not(HasSubstr("subtree_control")));
}

// E41 as well: started in a terminal whose slice lacks one controller.
TEST_F(UnifiedHost, ControllerLostBelowTheUserManagerIsTheUsers) {
  host.Cgroup(kManager + "/app.slice", kUser, kAllOn, "memory pids");
  host.Cgroup(kScope, kUser, "memory pids", "", "domain", "4242");
  Diagnosis cpu = Ask(host, Controller::kCpu);
  EXPECT_DIAGNOSIS(cpu, "no", "user");
  EXPECT_EQ(cpu.level, kManager + "/app.slice");
  EXPECT_THAT(cpu.fix, HasSubstr("systemd-run --user --scope -p Delegate=yes"));
}

// As long as no unit of its asks for it.
TEST_F(UnifiedHost, ControllerThatTheUserManagerHandsToNobodyIsTheUsers) {
  host.Cgroup(kManager, kUser, kAllOn, "memory pids");
  host.Cgroup(kManager + "/app.slice", kUser, "memory pids", "memory pids");
  host.Cgroup(kScope, kUser, "memory pids", "", "domain", "4242");
  Diagnosis cpu = Ask(host, Controller::kCpu);
  EXPECT_DIAGNOSIS(cpu, "no", "user");
  EXPECT_EQ(cpu.level, kManager);
  EXPECT_THAT(cpu.fix, HasSubstr("systemd-run --user --scope -p Delegate=yes"));
}

TEST_F(UnifiedHost, FirstBreakFromTheRootDecides) {
  host.Cgroup(kSlice, 0, kAllOn, "memory pids");
  host.Cgroup(kManager, kUser, "memory pids", "memory");
  host.Cgroup(kManager + "/app.slice", kUser, "memory", "memory");
  host.Cgroup(kScope, 0, "memory", "");
  EXPECT_EQ(Ask(host, Controller::kCpu).level, kSlice);
  EXPECT_EQ(Ask(host, Controller::kPids).level, kManager);
  EXPECT_EQ(Ask(host, Controller::kMemory).level, kScope);
}

// E04: a session scope beside a running user manager.
TEST_F(UnifiedHost, SessionScopeAsksForAScopeOfTheManager) {
  Move("/user.slice/user-1500.slice/session-48.scope");
  host.Cgroup(kSlice + "/session-48.scope", 0, kAllOn, "", "domain", "4242");
  EXPECT_EQ(States(host), "no no no");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "user");
  EXPECT_EQ(memory.level, kSlice + "/session-48.scope");
  EXPECT_THAT(memory.reason, HasSubstr("own cgroup is not delegated"));
  EXPECT_THAT(memory.fix, HasSubstr("systemd-run --user --scope -p Delegate=yes"));
  EXPECT_THAT(memory.fix, Not(HasSubstr("chmod")));
}

// E05: su, in another user's session and without a user manager.
TEST_F(UnifiedHost, SuWithoutASessionAsksForALogin) {
  Move("/user.slice/user-1000.slice/session-3.scope");
  host.Cgroup(kRoot + "/user.slice/user-1000.slice", 0, kAllOn, kAllOn);
  host.Cgroup(kRoot + "/user.slice/user-1000.slice/session-3.scope", 0, kAllOn, "");
  host.Remove("/run/user/1500/bus");
  host.Remove("/run/user/1500");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "user");
  EXPECT_THAT(memory.fix, HasSubstr("login session"));
  EXPECT_THAT(memory.fix, HasSubstr("loginctl enable-linger agent1"));
  EXPECT_THAT(memory.fix, HasSubstr("export XDG_RUNTIME_DIR=/run/user/1500"));
}

// E06: a login, but no D-Bus of the user.
TEST_F(UnifiedHost, MissingUserBusIsAPackage) {
  Move("/user.slice/user-1500.slice/session-48.scope");
  host.Cgroup(kSlice + "/session-48.scope", 0, kAllOn, "");
  host.Remove("/run/user/1500/bus");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_THAT(memory.fix, HasSubstr("dbus-user-session"));
}

// A login whose user manager does not run, as where Delegate= is off for it: no package is missing.
TEST_F(UnifiedHost, FailedUserManagerIsNotTakenForAMissingBus) {
  Move("/user.slice/user-1500.slice/session-48.scope");
  host.Cgroup(kSlice + "/session-48.scope", 0, kAllOn, "");
  for (const std::string& each : {kScope, kManager + "/app.slice", kManager}) host.Remove(each);
  host.Remove("/run/user/1500/bus");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_THAT(memory.fix, HasSubstr("user@1500.service does not run"));
  EXPECT_THAT(memory.fix, HasSubstr("taskcell-probe delegate --user agent1 --apply"));
  EXPECT_THAT(memory.fix, Not(HasSubstr("dbus")));
}

// E09: a system service with User= and without Delegate=.
TEST_F(UnifiedHost, SystemUnitNeedsDelegate) {
  Move("/system.slice/gateway.service");
  host.Cgroup(kRoot + "/system.slice", 0, "cpu io memory pids", kAllOn);
  host.Cgroup(kRoot + "/system.slice/gateway.service", 0, kAllOn, "", "domain", "4242");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_THAT(memory.fix, HasSubstr("/etc/systemd/system/gateway.service.d"));
  EXPECT_THAT(memory.fix, HasSubstr("Delegate=yes"));
  EXPECT_THAT(memory.fix, Not(HasSubstr("user@")));
}

// E10: the processes of a delegated cgroup are moved aside by the launcher itself.
TEST_F(UnifiedHost, OwnProcessesAreNoObstacle) {
  Move("/system.slice/gateway.service");
  host.Cgroup(kRoot + "/system.slice", 0, "cpu io memory pids", kAllOn);
  host.Cgroup(kRoot + "/system.slice/gateway.service", kUser, kAllOn, "", "domain", "4242 4243");
  EXPECT_EQ(States(host), "yes yes yes");
}

TEST_F(UnifiedHost, ProcessesOfAnOuterPidNamespaceAre) {
  host.Cgroup(kScope, kUser, kAllOn, "", "domain", "0 4242");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kPids), "no", "outer");
}

TEST_F(UnifiedHost, SupervisorUsesItsParent) {
  Move("/user.slice/user-1500.slice/user@1500.service/app.slice/t.scope/supervisor");
  host.Cgroup(kScope, kUser, kAllOn, "");
  host.Cgroup(kScope + "/supervisor", kUser, "", "", "domain", "4242");
  EXPECT_EQ(States(host), "yes yes yes");
  EXPECT_EQ(Ask(host, Controller::kCpu).place, kScope);
}

// E43 and the threaded case: what the owner can undo without an administrator.
TEST_F(UnifiedHost, ThreadedDomainIsTheOwnersToUndo) {
  host.Cgroup(kScope, kUser, kAllOn, "cpu pids", "domain threaded", "4242");
  EXPECT_EQ(States(host), "no no no");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "user");
  EXPECT_THAT(memory.reason, HasSubstr("threaded domain"));
  EXPECT_THAT(memory.reason, testing::StartsWith("own cgroup is a threaded domain"));
  // A process can join no leaf before they are off: its type is 'domain invalid' until then.
  std::size_t off = memory.fix.find(Text("'-pids -cpu -cpuset' >", kScope));
  std::size_t leaf = memory.fix.find(Text(kScope, "/supervisor"));
  EXPECT_LT(off, leaf) << memory.fix;
  EXPECT_NE(leaf, std::string::npos) << memory.fix;
  EXPECT_THAT(memory.fix, Not(HasSubstr("user@.service")));
  host.Cgroup(kScope, kUser, kAllOn, "", "domain invalid");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kMemory), "no", "user");
}

TEST_F(UnifiedHost, ThreadedDomainAboveIsNotCalledTheOwnCgroup) {
  host.Cgroup(kManager, kUser, kAllOn, kAllOn, "domain threaded");
  EXPECT_THAT(
      Ask(host, Controller::kMemory).reason,
      testing::StartsWith("a cgroup above the own one is a threaded domain: cgroup.type of " +
                          kManager + " is"));
}

TEST_F(UnifiedHost, FrozenLevelIsNamed) {
  host.Put(kManager + "/app.slice/cgroup.freeze", "1\n", kUser);
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "user");
  EXPECT_EQ(memory.level, kManager + "/app.slice");
}

TEST_F(UnifiedHost, CapsOnDescendantsAndDepthAreCounted) {
  host.Put(kManager + "/cgroup.max.descendants", "3\n");
  EXPECT_EQ(States(host), "yes yes yes");  // one is there, two more fit
  host.Put(kManager + "/cgroup.max.descendants", "2\n");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "user");
  EXPECT_EQ(memory.level, kManager);
  host.Put(kManager + "/cgroup.max.descendants", "max\n");
  host.Put(kManager + "/cgroup.max.depth", "4\n");  // app.slice, t.scope, run, cell
  EXPECT_EQ(States(host), "yes yes yes");
  host.Put(kManager + "/cgroup.max.depth", "3\n");
  EXPECT_EQ(States(host), "no no no");
}

TEST_F(UnifiedHost, OnlyTheDirectoryHandedOverIsNotEnough) {
  for (const char* file : {"/cgroup.procs", "/cgroup.subtree_control"}) {
    SetUp();
    host.Own(kScope + file, 0);
    Diagnosis memory = Ask(host, Controller::kMemory);
    EXPECT_EQ(Name(memory.state), "no");
    EXPECT_EQ(memory.file, kScope + file);
  }
}

TEST_F(UnifiedHost, CgroupThatOthersMayWriteIsRefused) {
  host.Mode(kScope, 0775);
  EXPECT_DIAGNOSIS(Ask(host, Controller::kPids), "no", "user");
}

// E15: the controller is said to be there, and the limit file is not.
TEST_F(UnifiedHost, ContradictionIsUnknown) {
  host.Remove(kScope + "/memory.max");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "unknown", "none");
  EXPECT_EQ(memory.file, kScope + "/memory.max");
  EXPECT_EQ(Name(Ask(host, Controller::kPids).state), "yes");
}

// The other way round: a limit file, writable too, that no controller stands behind.
TEST_F(UnifiedHost, WritableLimitFileWithoutItsControllerLimitsNothing) {
  host.Cgroup(kManager + "/app.slice", kUser, kAllOn, "pids");
  host.Cgroup(kScope, kUser, "pids", "", "domain", "4242");
  for (const char* file : {"/memory.max", "/cpu.max"}) {
    ASSERT_TRUE(host.Read(kScope + file, 64).present());
    host.Own(kScope + file, kUser);
  }
  EXPECT_EQ(States(host), "no yes no");
}

TEST_F(UnifiedHost, ControllerBelowALevelThatDoesNotHandItOnIsUnknown) {
  host.Cgroup(kSlice, 0, kAllOn, "memory pids");  // but the manager lists cpu
  EXPECT_DIAGNOSIS(Ask(host, Controller::kCpu), "unknown", "none");
  SetUp();
  host.Put(kManager + "/cgroup.controllers", "memory pids\n");  // handed on from above
  Diagnosis cpu = Ask(host, Controller::kCpu);
  EXPECT_DIAGNOSIS(cpu, "unknown", "none");
  EXPECT_EQ(cpu.level, kManager);
}

TEST_F(UnifiedHost, MissingAndUnreadableEvidenceIsUnknown) {
  const std::string files[] = {kManager + "/cgroup.controllers", kSlice + "/cgroup.subtree_control",
                               kScope + "/cgroup.type", kRoot + "/cgroup.controllers"};
  for (const std::string& file : files) {
    SetUp();
    host.Forbid(file, EACCES);
    EXPECT_EQ(States(host), "unknown unknown unknown") << file;
    SetUp();
    host.Remove(file);
    EXPECT_EQ(States(host), "unknown unknown unknown") << file;
  }
  SetUp();
  host.Remove(kSlice);
  EXPECT_EQ(States(host), "unknown unknown unknown");
  for (const char* file : {"/proc/self/cgroup", "/proc/self/mountinfo"}) {
    SetUp();
    host.Remove(file);
    EXPECT_EQ(States(host), "unknown unknown unknown") << file;
    EXPECT_THAT(Ask(host, Controller::kCpu).reason, HasSubstr(file));
    SetUp();
    host.Put(file, "garbage\n");
    EXPECT_EQ(States(host), "unknown unknown unknown") << file;
  }
}

TEST_F(UnifiedHost, LimitThatCannotBeReadIsUnknown) {
  host.Forbid(kSlice + "/memory.max", EACCES);
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "unknown", "none");
  EXPECT_EQ(memory.file, kSlice + "/memory.max");
  EXPECT_THAT(memory.reason, HasSubstr("cannot be read"));
}

TEST_F(UnifiedHost, LimitThatIsNoneIsUnknown) {
  host.Put(kSlice + "/memory.max", "10Q\n");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "unknown", "none");
  EXPECT_EQ(memory.level, kSlice);
  EXPECT_EQ(memory.place, "");
}

TEST_F(UnifiedHost, SmallestOuterLimitIsFound) {
  host.Put(kSlice + "/memory.max", "2147483648\n");
  host.Put(kManager + "/memory.max", "1073741824\n");
  host.Put(kScope + "/pids.max", "64\n");
  host.Put(kSlice + "/cpu.max", "50000 100000\n");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "yes", "none");
  EXPECT_EQ(memory.outer_limit, 1073741824U);
  EXPECT_EQ(memory.outer_file, kManager + "/memory.max");
  EXPECT_EQ(Ask(host, Controller::kPids).outer_limit, 64U);
  EXPECT_EQ(Ask(host, Controller::kCpu).outer_limit, 500U);
}

TEST_F(UnifiedHost, HierarchyWithoutItsLineOrWithTwoIsUnknown) {
  host.Put("/proc/self/cgroup", "1:name=systemd:/\n");
  EXPECT_EQ(States(host), "unknown unknown unknown");
  host.Put("/proc/self/cgroup", "0::/a\n0::/b\n");
  EXPECT_EQ(States(host), "unknown unknown unknown");
  SetUp();
  host.Put("/proc/self/mountinfo",
           Text(kUnifiedMount, "31 23 0:27 / /v1/memory rw - cgroup cgroup rw,memory\n"));
  EXPECT_EQ(States(host), "unknown unknown unknown");
}

TEST_F(UnifiedHost, UnknownUidIsUnknown) {
  host.Put("/proc/self/status", "Name:\tx\n");
  EXPECT_EQ(States(host), "unknown unknown unknown");
}

// E28: an engine that takes 0 for a limit leaves 1 behind.
TEST_F(UnifiedHost, LimitOfOneProcessFromOutsideIsFound) {
  host.Put(kManager + "/pids.max", "1\n");
  EXPECT_EQ(Ask(host, Controller::kPids).outer_limit, 1U);
}

TEST_F(UnifiedHost, EvidenceIsTheOwnerWhereThatDecides) {
  host.Own(kScope + "/cgroup.procs", 0);
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_EQ(memory.file, kScope + "/cgroup.procs");
  EXPECT_EQ(memory.value, "uid 0");
  host.Own(kScope, 7);
  memory = Ask(host, Controller::kMemory);
  EXPECT_EQ(memory.file, kScope);
  EXPECT_EQ(memory.value, "uid 7");
}

TEST_F(UnifiedHost, EvidenceSaysThatAFileTellsNothing) {
  host.Remove(kScope + "/cgroup.type");
  EXPECT_EQ(Ask(host, Controller::kMemory).value, "missing");
  host.Forbid(kScope + "/cgroup.type", EACCES);
  EXPECT_EQ(Ask(host, Controller::kMemory).value, "cannot be read");
}

TEST_F(UnifiedHost, HierarchyUnderAnotherMountIsNamed) {
  Situation situation = ReadSituation(host, {});
  for (Chain& chain : situation.chains) chain.covered = true;
  Diagnosis memory = Diagnose(situation, Controller::kMemory);
  EXPECT_THAT(memory.reason, HasSubstr("something else is mounted over"));
  EXPECT_EQ(memory.file, kRoot);
  EXPECT_EQ(memory.value, "something else is mounted over it");
}

// E21: off at boot; and what else may be the cause at the root.
TEST_F(UnifiedHost, ControllerMissingAtTheRootNamesTheCause) {
  auto without_memory = [this] {
    host.Cgroup(kRoot, 0, "cpuset cpu io pids", "cpu io pids", "-", "1");
    for (const std::string& each :
         {kRoot + "/user.slice", kSlice, kManager, kManager + "/app.slice"})
      host.Cgroup(each, each == kManager ? kUser : 0, "cpu pids", "cpu pids");
    host.Cgroup(kScope, kUser, "cpu pids", "");
  };
  without_memory();
  host.Put("/proc/cmdline", "console=tty cgroup_disable=memory quiet\n");
  EXPECT_EQ(States(host), "no yes yes");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_THAT(memory.fix, HasSubstr("cgroup_enable=memory"));
  host.Put("/proc/cmdline", "cgroup_disable=hugetlb,memory\n");
  EXPECT_THAT(Ask(host, Controller::kMemory).reason, HasSubstr("switched off at boot"));
  host.Put("/proc/cmdline", "cgroup_disable=hugetlb,memory_recursive\n");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kMemory), "no", "kernel");
  host.Put("/proc/cmdline", "quiet\n");
  host.Put("/proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t80\t0\n");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kMemory), "no", "admin");
  host.Put("/proc/cgroups", "memory\t7\t80\t1\n");
  memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_THAT(memory.reason, HasSubstr("v1"));
  // E25: nothing explains it but the kernel.
  host.Put("/proc/cgroups", "cpu\t0\t80\t1\n");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kMemory), "no", "kernel");
}

TEST_F(UnifiedHost, KernelWithoutBandwidthControl) {
  host.Remove(kScope + "/cpu.max");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kCpu), "no", "kernel");
}

TEST_F(UnifiedHost, UnaccountedSwapIsAWayOut) {
  host.Put("/proc/swaps", "Filename\tType\tSize\n/dev/sda2 partition 1 0 -2\n");
  EXPECT_EQ(States(host), "yes yes yes");
  host.Remove(kScope + "/memory.swap.max");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_THAT(memory.fix, HasSubstr("swapaccount=1"));
}

// WSL and others mount elsewhere: the path comes from mountinfo.
TEST(DiagnosisTest, MountPointComesFromMountinfo) {
  MemoryHost host;
  host.Process(kUser, "0::/d\n", "30 23 0:26 / /mnt/cg rw - cgroup2 none rw\n");
  host.Cgroup("/mnt/cg", 0, kAllOn, kAllOn, "-");
  host.Cgroup("/mnt/cg/d", kUser, kAllOn, "");
  EXPECT_EQ(States(host), "yes yes yes");
}

// elogind and OpenRC (E16): no service manager may be named that is not there.
TEST(DiagnosisTest, WithoutSystemdOnlyTheAdministratorCanAct) {
  MemoryHost host;
  host.Process(kUser, "0::/1\n", kUnifiedMount);
  host.Cgroup(kRoot, 0, "cpuset cpu io memory hugetlb pids", "", "-", "1");
  host.Cgroup(kRoot + "/elogind", 0, "", "");
  host.Cgroup(kRoot + "/1", 0, "", "", "domain", "4242");
  EXPECT_EQ(States(host), "no no no");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_EQ(memory.level, kRoot);
  EXPECT_THAT(memory.reason, HasSubstr("own cgroup is not delegated"));
  EXPECT_THAT(memory.fix, HasSubstr("from the root down"));
  for (const char* word : {"linger", "user@", "systemd"})
    EXPECT_THAT(memory.fix, Not(HasSubstr(word)));
  // A prepared directory helps only who is in it.
  host.Cgroup(kRoot, 0, kAllOn, kAllOn, "-", "1");
  host.Cgroup(kRoot + "/1", 0, kAllOn, "", "domain", "4242");
  host.Cgroup(kRoot + "/taskcell", 0, kAllOn, kAllOn);
  host.Cgroup(kRoot + "/taskcell/uid-1500", kUser, kAllOn, "");
  memory = Ask(host, Controller::kMemory);
  EXPECT_DIAGNOSIS(memory, "no", "admin");
  EXPECT_THAT(memory.fix, HasSubstr("/taskcell/uid-1500/supervisor/cgroup.procs"));
  host.Put("/proc/self/cgroup", "0::/taskcell/uid-1500/supervisor\n");
  host.Cgroup(kRoot + "/taskcell/uid-1500/supervisor", kUser, "", "", "domain", "4242");
  EXPECT_EQ(States(host), "yes yes yes");
}

TEST(DiagnosisTest, NothingMountedIsNamed) {
  MemoryHost host;
  host.Process(kUser, "0::/\n", "1 1 0:1 / / rw - ext4 /dev/sda rw\n");
  EXPECT_DIAGNOSIS(Ask(host, Controller::kMemory), "no", "admin");
}

// Names of cgroups are whoever's who made them, and a fix is pasted by an administrator.
TEST_F(UnifiedHost, HostileNameIsQuotedInCommands) {
  std::string evil = kManager + "/$(reboot);x\x1b[2J";
  Move("/user.slice/user-1500.slice/user@1500.service/$(reboot);x\x1b[2J");
  host.Cgroup(evil, kUser, kAllOn, "pids", "domain threaded");
  Diagnosis memory = Ask(host, Controller::kMemory);
  EXPECT_THAT(memory.fix, HasSubstr("$'/sys/fs/cgroup/"));
  for (const std::string& text : {memory.fix, memory.reason})
    EXPECT_EQ(text.find('\x1b'), text.npos);
}

TEST(DiagnosisTest, EndlessPathEnds) {
  MemoryHost host;
  std::string path = "0::";
  for (int i = 0; i < 100'000; ++i) path += "/a";
  host.Process(kUser, path + "\n", kUnifiedMount);
  host.Cgroup(kRoot, 0, kAllOn, kAllOn, "-");
  EXPECT_EQ(Name(Ask(host, Controller::kMemory).state), "no");
}

}  // namespace
}  // namespace taskcell::cgroup
