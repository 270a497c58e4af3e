// Situations reported from the field with the wrong diagnosis, each as a host: what is found, who
// must act, the cause and the fix; and what must not be said. E01 to E48 are the numbers of the
// collection they were taken from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "tests/unit/probe/rules/archived_host.h"

namespace taskcell::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

using Texts = std::vector<const char*>;

constexpr std::string_view kOn = "cpu memory pids";
const std::string kRoot = GoodHost::kRoot;
const std::string kSlice = GoodHost::kSlice;
const std::string kManager = GoodHost::kManager;
const std::string kApp = GoodHost::kApp;
const std::string kScope = GoodHost::kScope;
constexpr uint32_t kUser = GoodHost::kUser;

struct FieldHost : ArchivedHost {
  LiveFacts live = GoodLive();

  void MoveTo(const std::string& own_path) { Put("/proc/self/cgroup", "0::" + own_path + "\n"); }
  // A login of the user's, in a scope that is root's.
  void InSession() {
    MoveTo("/user.slice/user-1500.slice/session-48.scope");
    Cgroup(kSlice + "/session-48.scope", 0, kOn, "", "domain", "4242");
  }
  void InService(uint32_t owner, std::string_view settings) {
    Process(kUser, "0::/system.slice/gw.service\n", test::kUnifiedMount);
    Cgroup(kRoot + "/system.slice", 0, kOn, kOn);
    Cgroup(kRoot + "/system.slice/gw.service", owner, kOn, "", "domain", "4242 4243");
    Put("/etc/systemd/system/gw.service", Text("[Service]\nUser=agent1\n", settings));
  }
  // A container with a cgroup namespace of its own.
  void InContainer(uint32_t uid, std::string_view options, std::string_view controllers) {
    Process(uid, "0::/\n",
            Text("8 7 0:26 / /sys/fs/cgroup ", options, " - cgroup2 cgroup rw,nsdelegate\n"));
    Remove("/run/systemd/system");
    Cgroup(kRoot, uid, controllers, "", "domain", "1 4242");
  }
  void OnV1(std::string_view memberships, std::string_view mounts) {
    Process(kUser, memberships, mounts);
    for (const char* each : {"memory", "memory/jobs/77", "pids", "cpu"})
      Directory(kRoot + "/" + each);
  }
  void Without(std::string_view controllers_left) {
    for (const std::string& each : {kRoot, kRoot + "/user.slice", kSlice, kManager, kApp})
      Cgroup(each, each == kManager || each == kApp ? kUser : 0, controllers_left, controllers_left,
             each == kRoot ? "-" : "domain");
    Cgroup(kScope, kUser, controllers_left, "", "domain", "4242");
  }
  void Tried(const char* feature, Outcome outcome, int err) {
    for (Trial& each : live.trials)
      if (each.feature == feature) each = {feature, outcome, err, feature};
  }
};

struct Situation {
  const char* name;
  void (*arrange)(FieldHost&);
  const char* row;
  Verdict verdict;
  Who who;
  Texts cause;
  Texts fix;
  Texts never = {};  // the wrong diagnosis
};

std::ostream& operator<<(std::ostream& out, const Situation& situation) {
  return out << situation.name;
}

class FieldSituationTest : public testing::TestWithParam<Situation> {};

TEST_P(FieldSituationTest, HasItsVerdictCauseAndFix) {
  const Situation& situation = GetParam();
  FieldHost host;
  ASSERT_EQ(host.Report(host.live).verdict, Verdict::kReady) << "control";
  situation.arrange(host);
  Report report = host.Report(host.live);
  const Finding& found = Row(report, situation.row);
  SCOPED_TRACE(TableOf(report, {}));
  EXPECT_EQ(Name(found.verdict), Name(situation.verdict));
  EXPECT_EQ(Name(found.who), Name(situation.who));
  for (const char* text : situation.cause) EXPECT_THAT(found.reason, HasSubstr(text));
  for (const char* text : situation.fix) EXPECT_THAT(found.fix, HasSubstr(text));
  EXPECT_EQ(found.fix.empty(), situation.fix.empty()) << found.fix;
  for (const char* text : situation.never)
    EXPECT_THAT(found.reason + found.fix, Not(HasSubstr(text)));
}

std::string NameOf(const testing::TestParamInfo<Situation>& tested) { return tested.param.name; }

constexpr char kDelegate[] = "taskcell-probe delegate --user agent1 --apply";
constexpr char kAskForScope[] = "systemd-run --user --scope -p Delegate=yes";

INSTANTIATE_TEST_SUITE_P(
    OfSystemd, FieldSituationTest,
    testing::Values(
        Situation{
            "E01ControllerNotDelegatedToTheUserManager",
            [](FieldHost& host) {
              host.Without("memory pids");
              host.Cgroup(kRoot, 0, "cpu memory pids", "cpu memory pids", "-");
              host.Cgroup(kRoot + "/user.slice", 0, "cpu memory pids", "memory pids");
            },
            "limits.cpu",
            Verdict::kLimited,
            Who::kAdmin,
            {"controller not delegated to the user manager", "user.slice/cgroup.subtree_control"},
            {kDelegate, "daemon-reload", "log out of every session and in again"},
            {"kernel", "printf"}},
        Situation{
            "E02SystemdTooOldForCpuset",
            [](FieldHost& host) { host.Put("/usr/lib/systemd/libsystemd-shared-241.so", ""); },
            "systemd.manager",
            Verdict::kNote,
            Who::kAdmin,
            {"version 241", "cannot delegate cpuset"},
            {"upgrade"}},
        Situation{"E04CallerInASessionScope",
                  [](FieldHost& host) { host.InSession(); },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kUser,
                  {"own cgroup is not delegated", "session-48.scope belongs to uid 0"},
                  {kAskForScope},
                  {"chmod", "chown", "kernel"}},
        Situation{"E05SuWithoutASession",
                  [](FieldHost& host) {
                    host.MoveTo("/user.slice/user-1000.slice/session-3.scope");
                    host.Cgroup(kRoot + "/user.slice/user-1000.slice", 0, kOn, kOn);
                    host.Cgroup(kRoot + "/user.slice/user-1000.slice/session-3.scope", 0, kOn, "");
                    for (const std::string& each : {kScope, kApp, kManager}) host.Remove(each);
                    for (const char* each : {"/run/user/1500/bus", "/run/user/1500"})
                      host.Remove(each);
                  },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kUser,
                  {"own cgroup is not delegated", "user-1000.slice/session-3.scope"},
                  {"login session", "loginctl enable-linger agent1",
                   "export XDG_RUNTIME_DIR=/run/user/1500"},
                  {"dbus-user-session", "kernel"}},
        Situation{"E06UserBusIsMissing",
                  [](FieldHost& host) {
                    host.InSession();
                    host.Remove("/run/user/1500/bus");
                  },
                  "systemd.runtime-directory",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"no D-Bus socket (/run/user/1500/bus)"},
                  {"apt install dbus-user-session", "log in again"},
                  {"linger"}},
        Situation{"E06UserBusIsMissingForTheLimits",
                  [](FieldHost& host) {
                    host.InSession();
                    host.Remove("/run/user/1500/bus");
                  },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"own cgroup is not delegated"},
                  {"dbus-user-session", "systemctl --user start dbus"}},
        Situation{"E08NoLinger",
                  [](FieldHost& host) { host.Remove("/var/lib/systemd/linger/agent1"); },
                  "systemd.linger",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"at the last logout", "limits are not touched"},
                  {"loginctl enable-linger agent1"}},
        Situation{
            "E09SystemUnitWithoutDelegate",
            [](FieldHost& host) { host.InService(0, ""); },
            "limits.memory",
            Verdict::kNot,
            Who::kAdmin,
            {"own cgroup is not delegated", "gw.service belongs to uid 0"},
            {"/etc/systemd/system/gw.service.d", "Delegate=yes", "systemctl restart gw.service"},
            {"user@", "linger"}},
        Situation{"E10ProcessesInTheDelegatedUnit",
                  [](FieldHost& host) { host.InService(kUser, "Delegate=yes\n"); },
                  "cgroup.internal-processes",
                  Verdict::kNote,
                  Who::kNone,
                  {"gw.service holds processes, which must leave it"},
                  {"DelegateSubgroup=supervisor"}},
        Situation{"E37HardenedUnitTakesOpenat2Away",
                  [](FieldHost& host) {
                    host.InService(kUser, "Delegate=yes\nRestrictSUIDSGID=yes\n");
                    host.Tried("openat2", Outcome::kAbsent, ENOSYS);
                  },
                  "kernel.openat2",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"RestrictSUIDSGID= of gw.service", "ENOSYS"},
                  {"gw.service.d", "RestrictSUIDSGID=no", "systemctl restart gw.service"},
                  {"newer kernel"}},
        Situation{"E37HardenedUnitForbidsNamespaces",
                  [](FieldHost& host) {
                    host.InService(kUser, "Delegate=yes\nRestrictNamespaces=yes\n");
                    host.Tried("user-namespace", Outcome::kForbidden, EPERM);
                  },
                  "userns",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"RestrictNamespaces= of gw.service"},
                  {"gw.service.d", "RestrictNamespaces=no"},
                  {"sysctl", "AppArmor"}},
        Situation{"E37HardenedUnitProtectsItsCgroups",
                  [](FieldHost& host) {
                    host.InService(kUser, "Delegate=yes\nProtectControlGroups=yes\n");
                    host.Put("/proc/self/mountinfo",
                             "8 7 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n");
                  },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"mounted read-only", "the unit protects it"},
                  {"gw.service.d", "ProtectControlGroups=no"},
                  {"unmask"}},
        Situation{"E37CallsFilteredByWhoeverStartedIt",
                  [](FieldHost& host) {
                    host.InService(kUser, "Delegate=yes\n");
                    host.Put("/proc/self/status",
                             "Uid:\t1500\t1500\t1500\t1500\nNoNewPrivs:\t1\nSeccomp:\t2\n");
                    host.Tried("openat2", Outcome::kForbidden, EPERM);
                  },
                  "kernel.openat2",
                  Verdict::kNote,
                  Who::kOuter,
                  {"a system call filter is installed"},
                  {"SystemCallFilter="},
                  {"newer kernel"}},
        Situation{"E41SliceLacksOneController",
                  [](FieldHost& host) {
                    host.Cgroup(kApp, kUser, kOn, "memory pids");
                    host.Cgroup(kScope, kUser, "memory pids", "", "domain", "4242");
                  },
                  "limits.cpu",
                  Verdict::kLimited,
                  Who::kUser,
                  {"the user manager does not hand the controller on to this cgroup",
                   "app.slice/cgroup.subtree_control"},
                  {kAskForScope},
                  {"administrator"}},
        Situation{"E43FrozenLevel",
                  [](FieldHost& host) { host.Put(kApp + "/cgroup.freeze", "1\n", kUser); },
                  "limits.pids",
                  Verdict::kNot,
                  Who::kUser,
                  {"app.slice is frozen"},
                  {"printf 0 >", "app.slice/cgroup.freeze"}},
        Situation{"E43CgroupsOfKilledCells",
                  [](FieldHost& host) {
                    const std::string run = kScope + "/run-0123456789abcdef0123456789abcdef";
                    host.Cgroup(run, kUser, kOn, "");
                    host.Cgroup(run + "/cell", kUser, kOn, "");
                  },
                  "cgroup.leftovers",
                  Verdict::kNote,
                  Who::kUser,
                  {"1 cgroups of cells hold no process", "run-0123456789abcdef0123456789abcdef"},
                  {"taskcell-launch -- true", "rmdir"}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    OfContainers, FieldSituationTest,
    testing::Values(
        Situation{"E12EngineInAContainerWhoseRootHoldsProcesses",
                  [](FieldHost& host) {
                    host.InContainer(0, "rw", kOn);
                    host.MoveTo("/init");
                    host.Cgroup(kRoot + "/init", 0, "", "");
                  },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kUser,
                  {"/sys/fs/cgroup holds processes", "cannot hand its controllers on"},
                  {"/sys/fs/cgroup/init", "cgroup.procs"},
                  {"kernel"}},
        Situation{"E12EngineInAContainerWhoseRootIsThreaded",
                  [](FieldHost& host) {
                    host.InContainer(0, "rw", kOn);
                    host.Cgroup(kRoot, 0, kOn, "cpu pids", "domain threaded", "1");
                  },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kUser,
                  {"threaded domain", "while it held processes"},
                  {"-pids -cpu -cpuset", "leaf"}},
        Situation{"E13CgroupFileSystemReadOnlyInAContainer",
                  [](FieldHost& host) { host.InContainer(kUser, "ro,nosuid", kOn); },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kOuter,
                  {"mounted read-only here (/sys/fs/cgroup)"},
                  {"--security-opt unmask=/sys/fs/cgroup", "outside"},
                  {"as administrator", "systemctl"}},
        Situation{"E15ControllerIsNamedButLimitsNothing",
                  [](FieldHost& host) { host.Remove(kScope + "/memory.max"); },
                  "limits.memory",
                  Verdict::kUnknown,
                  Who::kNone,
                  {"t.scope/memory.max contradicts"},
                  {}},
        Situation{"E31BoundaryOfTheNamespaceIsIntended",
                  [](FieldHost& host) { host.InContainer(kUser, "rw,nsdelegate", kOn); },
                  "limits.memory",
                  Verdict::kReady,
                  Who::kNone,
                  {"can be enforced below /sys/fs/cgroup"},
                  {}},
        Situation{"E31NoBoundaryAtTheNamespace",
                  [](FieldHost& host) {
                    host.Put("/proc/self/mountinfo",
                             "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
                  },
                  "cgroup.mount-options",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"without nsdelegate", "can raise its own limit"},
                  {"mount -o remount,nsdelegate /sys/fs/cgroup"}},
        Situation{"E36SomethingIsMountedBelowProc",
                  [](FieldHost& host) {
                    host.Tried("proc", Outcome::kForbidden, EPERM);
                    host.Tried("proc-subset", Outcome::kForbidden, EPERM);
                  },
                  "kernel.proc",
                  Verdict::kNot,
                  Who::kOuter,
                  {"something is mounted below /proc"},
                  {"unmask /proc outside", "unmask=ALL"},
                  {"seccomp", "capabilit"}},
        Situation{"E39ControllerNotPassedIntoTheGuest",
                  [](FieldHost& host) { host.InContainer(0, "rw", "cpu memory"); },
                  "limits.pids",
                  Verdict::kLimited,
                  Who::kOuter,
                  {"the pids controller is not passed into this container"},
                  {"on the host of this container", "LXC"},
                  {"newer kernel"}},
        Situation{"E40PodOnV1",
                  [](FieldHost& host) {
                    const std::string pod = "/kubepods/burstable/pod0a1b/9c8d";
                    host.OnV1(
                        Text("4:memory:", pod, "\n3:pids:", pod, "\n2:cpu,cpuacct:", pod, "\n"),
                        Text("396 394 0:21 ", pod,
                             " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n397 394 "
                             "0:22 ",
                             pod, " /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"));
                  },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kOuter,
                  {"mounted read-only here (/sys/fs/cgroup/memory)"},
                  {"outside of it"},
                  {"systemd.unified_cgroup_hierarchy"}}),
    NameOf);

constexpr char kV1Memberships[] = "8:pids:/\n4:memory:/jobs/77\n1:cpu,cpuacct:/\n";
constexpr char kV1Mounts[] =
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";

INSTANTIATE_TEST_SUITE_P(
    OfHosts, FieldSituationTest,
    testing::Values(
        Situation{"E16NoServiceManagerThatDelegates",
                  [](FieldHost& host) {
                    host.Remove("/run/systemd/system");
                    host.MoveTo("/1");
                    host.Cgroup(kRoot, 0, "cpuset cpu io memory pids", "", "-", "1");
                    host.Cgroup(kRoot + "/1", 0, "", "", "domain", "4242");
                  },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"own cgroup is not delegated", "'memory' is not in"},
                  {kDelegate, "from the root down", "/sys/fs/cgroup/taskcell/uid-1500"},
                  {"linger", "systemctl", "user@"}},
        Situation{"E17ControllersOnV1",
                  [](FieldHost& host) { host.OnV1(kV1Memberships, kV1Mounts); },
                  "limits.memory",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"memory is on a cgroup v1 hierarchy (/sys/fs/cgroup/memory)",
                   "no service manager delegates"},
                  {kDelegate, "systemd.unified_cgroup_hierarchy=1"}},
        Situation{"E17ManagerOnV1HandsNothingOver",
                  [](FieldHost& host) {
                    host.OnV1(kV1Memberships, kV1Mounts);
                    host.Put("/usr/lib/systemd/system/user@.service",
                             "[Service]\nDelegate=pids memory cpu\n");
                  },
                  "systemd.delegate",
                  Verdict::kNote,
                  Who::kNone,
                  {"hands over the unified hierarchy alone", "memory, pids and cpu are not on it"},
                  {},
                  {"has it"}},
        Situation{"E17ManagerOnV1Runs",
                  [](FieldHost& host) { host.OnV1(kV1Memberships, kV1Mounts); },
                  "systemd.user-manager",
                  Verdict::kReady,
                  Who::kNone,
                  {"user@1500.service runs"},
                  {}},
        Situation{"E18ControllersOnV1BesideAUnifiedHierarchy",
                  [](FieldHost& host) {
                    host.OnV1(
                        Text(kV1Memberships, "0::/\n"),
                        Text(kV1Mounts,
                             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"));
                    host.Cgroup(kRoot + "/unified", 0, "hugetlb", "", "-", "1 4242");
                  },
                  "limits.cpu",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"cpu is on a cgroup v1 hierarchy"},
                  {kDelegate, "systemd.unified_cgroup_hierarchy=1"},
                  {"hugetlb"}},
        Situation{"E18ControllerOfV2BesideV1StopsCrun",
                  [](FieldHost& host) {
                    host.OnV1(
                        Text(kV1Memberships, "0::/\n"),
                        Text(kV1Mounts,
                             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"));
                    host.Cgroup(kRoot + "/unified", 0, "hugetlb", "", "-", "1 4242");
                  },
                  "cgroup.v2-beside-v1",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"hugetlb", "crun refuses to start containers"},
                  {"systemd.unified_cgroup_hierarchy=1"}},
        Situation{"E18ControllerBoundToV1",
                  [](FieldHost& host) {
                    host.Without("cpu pids");
                    host.Put("/proc/cgroups", "memory\t7\t80\t1\n");
                  },
                  "limits.memory",
                  Verdict::kLimited,
                  Who::kAdmin,
                  {"the memory controller is bound to a cgroup v1 hierarchy"},
                  {"unmount the v1 hierarchy", "systemd.unified_cgroup_hierarchy=1"}},
        Situation{"E21ControllerOffAtBoot",
                  [](FieldHost& host) {
                    host.Without("cpu pids");
                    host.Put("/proc/cmdline", "console=tty cgroup_disable=memory quiet\n");
                  },
                  "limits.memory",
                  Verdict::kLimited,
                  Who::kAdmin,
                  {"the memory controller is switched off at boot"},
                  {"cgroup_disable=memory out of the kernel's command line", "cgroup_enable=memory",
                   "reboot"},
                  {"delegate"}},
        Situation{"E21ControllerOffWithoutAWordOnTheCommandLine",
                  [](FieldHost& host) {
                    host.Without("cpu pids");
                    host.Put("/proc/cgroups", "memory\t0\t80\t0\n");
                  },
                  "limits.memory",
                  Verdict::kLimited,
                  Who::kAdmin,
                  {"the memory controller is switched off at boot"},
                  {"a Raspberry Pi's firmware adds it", "cgroup_enable=memory"}},
        Situation{"E25KernelWithoutTheController",
                  [](FieldHost& host) {
                    host.Without("memory pids");
                    host.Put("/proc/cgroups", "memory\t0\t80\t1\n");
                  },
                  "limits.cpu",
                  Verdict::kLimited,
                  Who::kKernel,
                  {"this kernel has no cpu controller on the unified hierarchy"},
                  {"boot a kernel that has it"},
                  {"delegate"}},
        Situation{"E27LimitOfTheUserNotOfTheCgroup",
                  [](FieldHost& host) { host.live.own_tasks = 9'900; },
                  "host.tasks",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"9900 threads", "the most is 10000", "(EAGAIN) though its own limit is not"},
                  {"give cells their own uids", "raise nproc for agent1"},
                  {"pids.max", "cgroup"}},
        Situation{"E28LimitOfOneProcess",
                  [](FieldHost& host) { host.Put(kScope + "/pids.max", "1\n"); },
                  "cgroup.outer-limits",
                  Verdict::kNote,
                  Who::kNone,
                  {"pids 1 "},
                  {"t.scope/pids.max", "asked for 0"}},
        Situation{"E33AppArmorRestrictsUserNamespaces",
                  [](FieldHost& host) {
                    host.Put("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
                    host.Put("/proc/self/attr/current", "unconfined\n");
                    host.Tried("user-namespace", Outcome::kForbidden, EPERM);
                  },
                  "userns",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"AppArmor restricts user namespaces"},
                  {"best an AppArmor profile", "/etc/apparmor.d/taskcell"},
                  {"cgroup"}},
        Situation{"E34UserNamespacesSwitchedOff",
                  [](FieldHost& host) {
                    host.Put("/proc/sys/user/max_user_namespaces", "0\n");
                    host.Tried("user-namespace", Outcome::kForbidden, ENOSPC);
                  },
                  "userns",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"user.max_user_namespaces is 0"},
                  {"sysctl -w user.max_user_namespaces=15000", "/etc/sysctl.d"}},
        Situation{"E34UserNamespacesSwitchedOffForOrdinaryUsers",
                  [](FieldHost& host) {
                    host.Put("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
                    host.Tried("user-namespace", Outcome::kForbidden, EPERM);
                  },
                  "userns",
                  Verdict::kNot,
                  Who::kAdmin,
                  {"kernel.unprivileged_userns_clone is 0"},
                  {"sysctl -w kernel.unprivileged_userns_clone=1"}},
        Situation{"E35NewuidmapIsMissing",
                  [](FieldHost& host) { host.Remove("/usr/bin/newuidmap"); },
                  "newuidmap",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"not installed", "the caller's own id alone"},
                  {"apt install uidmap"}},
        Situation{"E35NewuidmapHasNoPrivilege",
                  [](FieldHost& host) { host.Put("/usr/bin/newuidmap", "", 0, 0755); },
                  "newuidmap",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"neither the set-user-id bit nor capabilities"},
                  {"chmod u+s /usr/bin/newuidmap"}},
        Situation{"E35NewuidmapCannotGainItsPrivilege",
                  [](FieldHost& host) {
                    host.Put("/proc/self/status",
                             "Uid:\t1500\t1500\t1500\t1500\nNoNewPrivs:\t1\nSeccomp:\t0\n");
                  },
                  "newuidmap",
                  Verdict::kNote,
                  Who::kOuter,
                  {"no_new_privs is set"},
                  {"NoNewPrivileges=no"}},
        Situation{"E35NoRange",
                  [](FieldHost& host) { host.Put("/etc/subuid", ""); },
                  "subids",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"no subordinate uids are granted to agent1", "the caller's own id alone"},
                  {"usermod --add-subuids", "agent1"}},
        Situation{"E35OverlappingRanges",
                  [](FieldHost& host) {
                    host.Put("/etc/subuid", "agent1:100000:65536\nother:100000:65536\n");
                  },
                  "subids",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"in /etc/subuid overlaps that of 'other'"},
                  {"take the line of one of them out of /etc/subuid", "usermod --add-subuids"}},
        Situation{"E35ShortRange",
                  [](FieldHost& host) { host.Put("/etc/subuid", "agent1:100000:1000\n"); },
                  "subids",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"1000"},
                  {"usermod --add-subuids"}},
        Situation{"E45SelinuxEnforces",
                  [](FieldHost& host) {
                    host.Put("/sys/kernel/security/lsm", "lockdown,capability,yama,selinux");
                    host.Put("/sys/fs/selinux/enforce", "1");
                  },
                  "security.modules",
                  Verdict::kNote,
                  Who::kAdmin,
                  {"SELinux enforces", "a cgroup that is the user's own"},
                  {"ausearch -m avc", "setsebool -P container_manage_cgroup on"},
                  {"chown"}},
        Situation{"E48RootfulEngineBehindARootlessUser",
                  [](FieldHost& host) {
                    host.Socket("/run/docker.sock", 0, 0660);
                    host.Socket("/run/user/1500/docker.sock", kUser, 0600);
                    host.live.engine_socket = "/run/docker.sock";
                    host.live.engine_source = "the default";
                  },
                  "engine.choice",
                  Verdict::kNote,
                  Who::kUser,
                  {"/run/docker.sock would be used, from the default", "the rootful engine"},
                  {"export DOCKER_HOST=unix:///run/user/1500/docker.sock"}}),
    NameOf);

}  // namespace
}  // namespace taskcell::probe
