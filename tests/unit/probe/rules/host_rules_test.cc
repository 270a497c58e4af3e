// Rows beside the limits: each breaks one thing of a good host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "probe/print/print.h"
#include "probe/rules/topics.h"
#include "tests/unit/probe/rules/archived_host.h"

namespace taskcell::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

class HostRules : public testing::Test {
 protected:
  Report Judged() { return host.Report(live); }
  Trial& trial(std::string_view feature) {
    for (Trial& each : live.trials) {
      if (each.feature == feature) return each;
    }
    return live.trials.front();
  }
  void InService(std::string_view settings) {
    host.Process(GoodHost::kUser, "0::/system.slice/gw.service\n", test::kUnifiedMount);
    host.Cgroup(GoodHost::kRoot + "/system.slice", 0, "cpu memory pids", "cpu memory pids");
    host.Cgroup(GoodHost::kRoot + "/system.slice/gw.service", GoodHost::kUser, "cpu memory pids",
                "");
    host.Put("/etc/systemd/system/gw.service",
             Text("[Service]\nUser=agent1\nDelegate=yes\n", settings));
  }
  ArchivedHost host;
  LiveFacts live = GoodLive();
};

TEST_F(HostRules, GoodHostIsReadyAndEveryRowHasATopic) {
  Report report = Judged();
  EXPECT_EQ(report.verdict, Verdict::kReady) << TableOf(report, {});
  for (const Finding& each : report.findings) EXPECT_NE(FindTopic(each.id), nullptr) << each.id;
}

// E02: an old systemd lacks cpuset, which is no limit of a cell.
TEST_F(HostRules, OldSystemdIsANoteAboutCpuset) {
  host.Put("/usr/lib/systemd/libsystemd-shared-241.so", "");
  Report report = Judged();
  EXPECT_EQ(Row(report, "systemd.manager").verdict, Verdict::kNote);
  EXPECT_THAT(Row(report, "systemd.manager").reason, HasSubstr("cpuset"));
  EXPECT_EQ(report.verdict, Verdict::kReady);
}

// E08: a matter of lifetime, not of limits.
TEST_F(HostRules, MissingLingerIsANote) {
  Report report = Judged();
  EXPECT_EQ(Row(report, "systemd.linger").verdict, Verdict::kNote);
  EXPECT_THAT(Row(report, "systemd.linger").fix, HasSubstr("loginctl enable-linger agent1"));
  EXPECT_THAT(Row(report, "systemd.linger").reason, HasSubstr("limits are not touched"));
  host.Put("/var/lib/systemd/linger/agent1", "");
  EXPECT_EQ(Row(Judged(), "systemd.linger").verdict, Verdict::kReady);
}

// E05 and E06 as rows of their own.
TEST_F(HostRules, RuntimeDirectoryBusAndVariable) {
  live.runtime_directory = "/run/user/0";
  EXPECT_THAT(Row(Judged(), "systemd.runtime-directory").fix,
              HasSubstr("export XDG_RUNTIME_DIR=/run/user/1500"));
  host.Remove("/run/user/1500/bus");
  EXPECT_EQ(Row(Judged(), "systemd.runtime-directory").who, Who::kAdmin);
  host.Remove("/run/user/1500");
  EXPECT_EQ(Row(Judged(), "systemd.runtime-directory").who, Who::kUser);
}

TEST_F(HostRules, DelegateConfiguredAgainstLive) {
  host.Put("/usr/lib/systemd/system/user@.service", "[Service]\nDelegate=pids memory\n");
  EXPECT_THAT(Row(Judged(), "systemd.delegate").reason, HasSubstr("does not name cpu"));
  host.Put("/etc/systemd/system/user@.service.d/t.conf", "[Service]\nDelegate=cpu\n");
  EXPECT_EQ(Row(Judged(), "systemd.delegate").verdict, Verdict::kReady);
  host.Put(GoodHost::kManager + "/cgroup.controllers", "memory pids\n");
  Report report = Judged();
  EXPECT_THAT(Row(report, "systemd.delegate").reason, HasSubstr("does not have it"));
  EXPECT_THAT(Row(report, "systemd.delegate").fix, HasSubstr("daemon-reload"));
}

// Without a cgroup of its own the manager ends at once, and its bus is missing for no other reason.
TEST_F(HostRules, DelegateSwitchedOffIsTheCauseOfAManagerThatDoesNotRun) {
  const std::string session = GoodHost::kSlice + "/session-1.scope";
  host.Process(GoodHost::kUser, "0::/user.slice/user-1500.slice/session-1.scope\n",
               test::kUnifiedMount);
  host.Cgroup(session, 0, "cpu memory pids", "", "domain", "4242");
  for (const std::string& each : {GoodHost::kScope, GoodHost::kApp, GoodHost::kManager})
    host.Remove(each);
  host.Remove("/run/user/1500/bus");
  host.Put("/usr/lib/systemd/system/user@.service", "[Service]\nDelegate=pids memory cpu\n");
  EXPECT_THAT(Row(Judged(), "systemd.user-manager").reason, HasSubstr("it failed"));
  EXPECT_THAT(Row(Judged(), "systemd.user-manager").fix, HasSubstr("journalctl -u user@1500"));
  EXPECT_THAT(Row(Judged(), "limits.memory").fix, HasSubstr("does not run"));

  const std::string drop_in = "/etc/systemd/system/user@1500.service.d/site.conf";
  host.Put(drop_in, "[Service]\nDelegate=no\n");
  Report report = Judged();
  for (const char* id :
       {"limits.memory", "limits.pids", "limits.cpu", "systemd.user-manager", "systemd.delegate"}) {
    EXPECT_THAT(Row(report, id).reason, HasSubstr(drop_in)) << id;
    EXPECT_EQ(Row(report, id).who, Who::kAdmin) << id;
    EXPECT_THAT(Row(report, id).fix, HasSubstr("taskcell-probe delegate --user agent1 --apply"));
  }
  EXPECT_EQ(report.limits[0].state, cgroup::LimitState::kNo);
  EXPECT_THAT(TableOf(report, {}), Not(HasSubstr("dbus-user-session")));
  EXPECT_THAT(report.Headline(), HasSubstr("Delegate= is switched off"));
}

// In a unit of the system's manager that user's manager is not the matter.
TEST_F(HostRules, DelegateSwitchedOffForTheUserIsNoMatterOfASystemUnit) {
  InService("");
  host.Own(GoodHost::kRoot + "/system.slice/gw.service", 0);
  host.Remove(GoodHost::kManager);
  host.Put("/etc/systemd/system/user@1500.service.d/site.conf", "[Service]\nDelegate=no\n");
  EXPECT_THAT(Row(Judged(), "limits.memory").fix, HasSubstr("gw.service.d"));
}

TEST_F(HostRules, WithoutSystemdNothingOfItIsNamed) {
  host.Remove("/run/systemd/system");
  host.Process(GoodHost::kUser, "0::/d\n", test::kUnifiedMount);
  host.Cgroup(GoodHost::kRoot + "/d", GoodHost::kUser, "cpu memory pids", "");
  std::string table = TableOf(Judged(), {});
  for (const char* word : {"linger", "systemctl", "user@"})
    EXPECT_THAT(table, Not(HasSubstr(word)));
}

// E27: the limit of the user, not the cell's.
TEST_F(HostRules, TasksOfTheUserNearTheirLimit) {
  live.own_tasks = 9'900;
  EXPECT_EQ(Row(Judged(), "host.tasks").verdict, Verdict::kNote);
  live.max_tasks = ~uint64_t{0};
  EXPECT_EQ(Row(Judged(), "host.tasks").verdict, Verdict::kReady);
}

// E33 and E34 on the running host: a trial outweighs what the files let expect.
TEST_F(HostRules, TrialOfTheUserNamespaceDecides) {
  trial("user-namespace") = {"user-namespace", Outcome::kForbidden, EPERM, "unshare"};
  Report report = Judged();
  EXPECT_EQ(report.userns.state, "no");
  EXPECT_EQ(report.userns.who, Who::kOuter);
  EXPECT_THAT(report.userns.fix, Not(HasSubstr("AppArmor")));
  trial("user-namespace").err = ENOSPC;
  report = Judged();
  EXPECT_EQ(report.userns.who, Who::kAdmin);
  EXPECT_THAT(report.userns.fix, HasSubstr("used up"));
  host.Put("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  EXPECT_EQ(Judged().userns.state, "restricted");
  trial("user-namespace") = {"user-namespace", Outcome::kWorks, 0, ""};  // a profile grants it
  EXPECT_EQ(Judged().userns.state, "yes");
}

// E35.
TEST_F(HostRules, NewuidmapNeedsItsPrivilege) {
  host.Put("/usr/bin/newuidmap", "", 0, 0755);
  EXPECT_THAT(Row(Judged(), "newuidmap").reason, HasSubstr("neither the set-user-id bit"));
  host.Attribute("/usr/bin/newuidmap", "security.capability", "x");
  EXPECT_EQ(Row(Judged(), "newuidmap").verdict, Verdict::kReady);
  host.Put("/proc/self/status", "Uid:\t1500\t1500\t1500\t1500\nNoNewPrivs:\t1\nSeccomp:\t0\n");
  EXPECT_THAT(Row(Judged(), "newuidmap").reason, HasSubstr("no_new_privs"));
  host.Remove("/usr/bin/newgidmap");
  EXPECT_THAT(Row(Judged(), "newuidmap").reason, HasSubstr("not installed"));
}

// E36: neither seccomp nor a capability.
TEST_F(HostRules, CoveredProcIsWhoeverMountedOverIt) {
  trial("proc") = {"proc", Outcome::kForbidden, EPERM, "mount of proc"};
  trial("proc-subset").outcome = Outcome::kForbidden;
  Report report = Judged();
  EXPECT_EQ(report.verdict, Verdict::kNot);
  EXPECT_EQ(Row(report, "kernel.proc").who, Who::kOuter);
  EXPECT_THAT(Row(report, "kernel.proc").reason, HasSubstr("below /proc"));
}

// A launcher on such a kernel makes cells all the same.
TEST_F(HostRules, WhatALauncherHasAFallbackForIsANoteThatSaysWhich) {
  struct {
    const char* feature;
    const char* fallback;
  } const rows[] = {
      {"openat2", "walked name by name"},    {"clone3", "by clone"},
      {"clone-into-cgroup", "moves itself"}, {"pidfd", "by its number"},
      {"landlock", "other walls"},           {"mount-api", "by mount(2)"},
      {"mount-setattr", "by mount(2)"},      {"proc", "processes alone"},
      {"close-range", "one by one"},
  };
  for (const auto& row : rows) {
    const Trial before = trial(row.feature);
    trial(row.feature) = {row.feature, Outcome::kAbsent, ENOSYS, "x"};
    Report report = Judged();
    EXPECT_EQ(report.verdict, Verdict::kReady) << row.feature;
    const Finding& finding = Row(report, Text("kernel.", row.feature));
    EXPECT_EQ(finding.verdict, Verdict::kNote) << row.feature;
    EXPECT_THAT(finding.reason, HasSubstr("works without, by fallback: ")) << row.feature;
    EXPECT_THAT(finding.reason, HasSubstr(row.fallback)) << row.feature;
    trial(row.feature) = before;
  }
  for (const char* feature : {"seccomp-filter", "tmpfs"}) {
    const Trial before = trial(feature);
    trial(feature) = {feature, Outcome::kAbsent, ENOSYS, "x"};
    Report report = Judged();
    EXPECT_EQ(Row(report, Text("kernel.", feature)).verdict, Verdict::kNot) << feature;
    trial(feature) = before;
  }
}

// fsopen(2) makes them all, and mount(2) is not tried.
TEST_F(HostRules, WithoutTheNewerMountCallsNothingIsSaidAgainstWhatTheyMake) {
  for (const char* feature : {"mount-api", "mount-setattr", "tmpfs", "proc", "proc-subset"})
    trial(feature) = {feature, Outcome::kAbsent, ENOSYS, "fsopen"};
  Report report = Judged();
  EXPECT_EQ(report.verdict, Verdict::kReady);
  EXPECT_EQ(Row(report, "kernel.tmpfs").verdict, Verdict::kNote);
  EXPECT_EQ(Row(report, "kernel.proc").verdict, Verdict::kNote);
}

// E37: the setting of the unit is named, not the kernel.
TEST_F(HostRules, HardenedUnitIsNamedWithItsSetting) {
  InService("RestrictSUIDSGID=yes\n");
  host.Put("/proc/self/status", "Uid:\t1500\t1500\t1500\t1500\nNoNewPrivs:\t1\nSeccomp:\t2\n");
  trial("openat2") = {"openat2", Outcome::kAbsent, ENOSYS, "openat2"};
  Report report = Judged();
  const Finding& openat2 = Row(report, "kernel.openat2");
  EXPECT_EQ(openat2.verdict, Verdict::kNote);
  EXPECT_EQ(openat2.who, Who::kAdmin);
  EXPECT_THAT(openat2.reason, HasSubstr("RestrictSUIDSGID= of gw.service"));
  EXPECT_THAT(openat2.fix, HasSubstr("gw.service.d"));
  EXPECT_THAT(Row(report, "systemd.hardening").fix, HasSubstr("RestrictSUIDSGID=no"));
}

TEST_F(HostRules, RestrictedNamespacesOfTheUnit) {
  InService("RestrictNamespaces=yes\n");
  Report report = host.Report();  // from files alone
  EXPECT_EQ(report.userns.state, "no");
  EXPECT_EQ(report.userns.who, Who::kAdmin);
  EXPECT_THAT(report.userns.fix, HasSubstr("RestrictNamespaces=no"));
  InService("RestrictNamespaces=no\nProtectControlGroups=no\n");
  EXPECT_EQ(host.Report().userns.state, "yes");
}

TEST_F(HostRules, OnlyNamespacesThatCellsNeedCountAsRestricted) {
  for (const char* allowing :
       {"=false", "=0", "=off", "=", "=user mnt pid net ipc uts cgroup", "=~time",
        "=yes\nRestrictNamespaces=", "=user mnt pid\nRestrictNamespaces=net ipc uts cgroup",
        "=~pid\nRestrictNamespaces=pid", "=~pid\nRestrictNamespaces=no"}) {
    InService(Text("RestrictNamespaces", allowing, "\n"));
    EXPECT_EQ(host.Report().userns.state, "yes") << allowing;
    EXPECT_EQ(Row(host.Report(), "systemd.hardening").verdict, Verdict::kReady) << allowing;
  }
  for (const char* blocking : {"=true", "=1", "=on", "=~user", "=~time pid",
                               "=user mnt pid net ipc", "=~cgroup\nRestrictNamespaces=~net",
                               "=user mnt pid net ipc uts cgroup\nRestrictNamespaces=~uts",
                               "=no\nRestrictNamespaces=~user"}) {
    InService(Text("RestrictNamespaces", blocking, "\n"));
    EXPECT_EQ(host.Report().userns.state, "no") << blocking;
    EXPECT_EQ(Row(host.Report(), "systemd.hardening").verdict, Verdict::kNot) << blocking;
  }
}

TEST_F(HostRules, HardeningThatATrialDisprovesIsANote) {
  InService("RestrictNamespaces=yes\nRestrictSUIDSGID=yes\nProtectKernelTunables=yes\n");
  Report report = Judged();
  EXPECT_EQ(report.verdict, Verdict::kReady) << report.Headline();
  const Finding note = Row(report, "systemd.hardening");
  EXPECT_EQ(note.verdict, Verdict::kNote);
  EXPECT_THAT(note.reason, HasSubstr("RestrictNamespaces=: not in force on this process"));
  EXPECT_THAT(note.reason, Not(HasSubstr("in the way")));
  EXPECT_EQ(note.found.size(), 3U);
  InService("RestrictNamespaces=user mnt\n");  // the kinds that the trial makes
  EXPECT_EQ(Row(Judged(), "systemd.hardening").verdict, Verdict::kNot);
  InService("RestrictSUIDSGID=yes\n");
  trial("openat2") = {"openat2", Outcome::kAbsent, ENOSYS, "openat2"};
  const Finding refused = Row(Judged(), "systemd.hardening");
  EXPECT_EQ(refused.verdict, Verdict::kNote);
  EXPECT_THAT(refused.reason, HasSubstr("RestrictSUIDSGID=: openat2 answers ENOSYS"));
}

TEST_F(HostRules, WritableCgroupsDisproveThatTheUnitProtectsThem) {
  InService("ProtectControlGroups=yes\n");
  Report report = Judged();
  EXPECT_EQ(report.verdict, Verdict::kReady) << report.Headline();
  EXPECT_THAT(Row(report, "systemd.hardening").reason,
              HasSubstr("ProtectControlGroups=: not in force on this process"));
  host.Put("/proc/self/mountinfo", "8 7 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n");
  EXPECT_EQ(Row(Judged(), "systemd.hardening").verdict, Verdict::kNot);
}

TEST_F(HostRules, HardeningIsShownWithTheFileItStandsIn) {
  InService("RestrictSUIDSGID=yes\nRestrictNamespaces=yes\n");
  host.Put("/etc/systemd/system/gw.service.d/z.conf", "[Service]\nDelegate=yes\n");
  Report report = host.Report();
  for (const Evidence& each : Row(report, "systemd.hardening").found)
    EXPECT_EQ(each.file, "/etc/systemd/system/gw.service") << each.value;
  EXPECT_EQ(Row(report, "userns").found.back().file, "/etc/systemd/system/gw.service");
}

TEST_F(HostRules, WhoTookAFeatureAwayFollowsFromTheFilter) {
  trial("openat2") = {"openat2", Outcome::kAbsent, ENOSYS, "openat2"};
  EXPECT_EQ(Row(Judged(), "kernel.openat2").who, Who::kKernel);
  host.Put("/proc/self/status", "Uid:\t1500\t1500\t1500\t1500\nSeccomp:\t2\n");
  EXPECT_EQ(Row(Judged(), "kernel.openat2").who, Who::kOuter);
  host.Put("/proc/self/status", "Uid:\t1500\t1500\t1500\t1500\nSeccomp:\t0\n");
  trial("openat2").outcome = Outcome::kForbidden;
  EXPECT_EQ(Row(Judged(), "kernel.openat2").who, Who::kAdmin);
  trial("landlock").outcome = Outcome::kAbsent;  // cells hold without it
  trial("openat2").outcome = Outcome::kWorks;
  EXPECT_EQ(Judged().verdict, Verdict::kReady);
}

// E45.
TEST_F(HostRules, SelinuxIsNamed) {
  host.Put("/sys/kernel/security/lsm", "lockdown,capability,yama,selinux");
  host.Put("/sys/fs/selinux/enforce", "1");
  EXPECT_THAT(Row(Judged(), "security.modules").fix, HasSubstr("container_manage_cgroup"));
}

TEST_F(HostRules, SysctlsAreNamedWithTheirCure) {
  host.Put("/proc/sys/fs/protected_symlinks", "0\n");
  host.Put("/proc/sys/fs/protected_hardlinks", "1\n");
  host.Put("/proc/sys/kernel/yama/ptrace_scope", "0\n");
  Report report = Judged();
  EXPECT_THAT(Row(report, "security.links").fix, HasSubstr("sysctl -w fs.protected_symlinks=1"));
  EXPECT_EQ(Row(report, "security.links").fix.find("hardlinks"), std::string::npos);
  EXPECT_EQ(Row(report, "security.ptrace").verdict, Verdict::kNote);
  EXPECT_EQ(report.verdict, Verdict::kReady);
}

TEST_F(HostRules, TracingIsFreeWhereYamaIsNotActive) {
  EXPECT_EQ(Row(Judged(), "security.ptrace").id, "(no such row)");  // no sysctl was seen at all
  host.Put("/proc/sys/kernel/osrelease", "6.1.0\n");
  Report report = Judged();
  EXPECT_EQ(Row(report, "security.ptrace").verdict, Verdict::kNote);
  EXPECT_THAT(Row(report, "security.ptrace").reason, HasSubstr("Yama is not active"));
  EXPECT_EQ(report.verdict, Verdict::kReady);
  host.Put("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  EXPECT_EQ(Row(Judged(), "security.ptrace").verdict, Verdict::kReady);
}

TEST_F(HostRules, EvidenceOfSubidsSaysWhatIsNotThere) {
  host.Put("/etc/subuid", "other:100000:65536\n");
  host.Remove("/etc/subgid");
  host.Remove("/proc/sys/user/max_user_namespaces");
  Report report = Judged();
  ASSERT_EQ(Row(report, "subids").found.size(), 2U);
  EXPECT_EQ(Row(report, "subids").found[0].value, "no line for agent1");
  EXPECT_EQ(Row(report, "subids").found[1].value, "missing");
  ASSERT_FALSE(Row(report, "userns").found.empty());
  EXPECT_EQ(Row(report, "userns").found[0].value, "missing");
}

// E48: the engine that would be used is not the user's own.
TEST_F(HostRules, RootfulEngineBehindARootlessUserIsNamed) {
  host.Socket("/run/docker.sock", 0, 0660);
  host.Socket("/run/user/1500/docker.sock", GoodHost::kUser, 0600);
  live.engine_socket = "/run/docker.sock";
  live.engine_source = "the default";
  Report report = Judged();
  EXPECT_EQ(Row(report, "engine.choice").verdict, Verdict::kNote);
  EXPECT_THAT(Row(report, "engine.choice").fix, HasSubstr("DOCKER_HOST"));
  host.Socket("/run/docker.sock", 0, 0666);
  EXPECT_THAT(Row(Judged(), "engine.sockets").reason, HasSubstr("root for everyone"));
  live.engine_error = "DOCKER_HOST: no";
  EXPECT_EQ(Row(Judged(), "engine.choice").verdict, Verdict::kNote);
}

TEST_F(HostRules, ChosenSocketIsSaidToBeOfNoUse) {
  live.engine_socket = "/home/a/engine.sock";
  EXPECT_THAT(Row(Judged(), "engine.choice").reason, Not(HasSubstr(";")));
  live.sockets = {{"/home/a/engine.sock", ENOENT}};
  EXPECT_THAT(Row(Judged(), "engine.choice").reason, HasSubstr("nothing is there"));
  live.sockets[0].err = EACCES;
  EXPECT_THAT(Row(Judged(), "engine.choice").reason, HasSubstr("may not use it (EACCES)"));
  EXPECT_EQ(Row(Judged(), "engine.choice").verdict, Verdict::kReady);
}

TEST_F(HostRules, ListenersAndGroupMembersAreNamed) {
  host.Put("/proc/net/tcp", "x\n 0: 00000000:0947 00000000:0000 0A 0\n");
  host.Put("/etc/group", "docker:x:999:ops\x1b[2J\n");
  Report report = Judged();
  EXPECT_THAT(Row(report, "engine.tcp").reason, HasSubstr("0.0.0.0:2375"));
  EXPECT_THAT(Row(report, "engine.docker-group").reason, HasSubstr("ops\\x1b"));
}

TEST_F(HostRules, LittleRoomAndAWrongClockAreNotes) {
  live.spaces[0].free_bytes = 1 << 20U;
  live.unix_time_s = 0;
  host.Put("/proc/sys/kernel/random/entropy_avail", "7\n");
  Report report = Judged();
  for (const char* id : {"host.disk", "host.clock", "host.entropy"})
    EXPECT_EQ(Row(report, id).verdict, Verdict::kNote) << id;
}

TEST_F(HostRules, FullCgroupIsNamedWithItsOwner) {
  host.Put(GoodHost::kScope + "/pids.max", "100\n");
  host.Put(GoodHost::kScope + "/pids.current", "96\n");
  EXPECT_THAT(Row(Judged(), "cgroup.pids-room").reason, HasSubstr("4 more processes"));
  EXPECT_EQ(Judged().verdict, Verdict::kReady);
  for (const char* now : {"97\n", "100\n", "101\n"}) {
    host.Put(GoodHost::kScope + "/pids.current", now);
    Report report = Judged();
    EXPECT_EQ(report.verdict, Verdict::kNot) << now;
    EXPECT_EQ(Row(report, "cgroup.pids-room").who, Who::kUser);
    EXPECT_THAT(Row(report, "cgroup.pids-room").fix, HasSubstr(GoodHost::kScope + "/pids.max"));
  }
  host.Put(GoodHost::kScope + "/pids.max", "max\n");
  EXPECT_EQ(Row(Judged(), "cgroup.pids-room").id, "(no such row)");
  host.Put(GoodHost::kSlice + "/pids.max", "7\n");
  host.Put(GoodHost::kSlice + "/pids.current", "7\n");
  EXPECT_EQ(Row(Judged(), "cgroup.pids-room").who, Who::kAdmin);
}

TEST_F(HostRules, GroupKilledAsAWholeIsANote) {
  EXPECT_EQ(Row(Judged(), "cgroup.oom-group").verdict, Verdict::kReady);
  host.Put(GoodHost::kSlice + "/memory.oom.group", "1\n");
  EXPECT_EQ(Row(Judged(), "cgroup.oom-group").who, Who::kAdmin);
  host.Put(GoodHost::kScope + "/memory.oom.group", "1\n");
  Report report = Judged();
  EXPECT_EQ(Row(report, "cgroup.oom-group").verdict, Verdict::kNote);
  EXPECT_EQ(Row(report, "cgroup.oom-group").who, Who::kUser);
  EXPECT_EQ(Row(report, "cgroup.oom-group").found.size(), 2U);
  EXPECT_EQ(report.verdict, Verdict::kReady);
}

TEST_F(HostRules, CgroupsOfEarlierCellsAreNamed) {
  const std::string kRun = GoodHost::kScope + "/run-0123456789abcdef0123456789abcde";
  host.Cgroup(kRun + "0", GoodHost::kUser, "cpu memory pids", "");
  host.Cgroup(kRun + "0/cell", GoodHost::kUser, "cpu memory pids", "", "domain", "77");
  EXPECT_THAT(Row(Judged(), "cgroup.leftovers").reason, HasSubstr("1 are in use"));
  host.Cgroup(kRun + "1", GoodHost::kUser, "cpu memory pids", "");
  host.Cgroup(kRun + "1/cell", GoodHost::kUser, "cpu memory pids", "");
  host.Cgroup(GoodHost::kScope + "/run-no-id", GoodHost::kUser, "", "");
  Report report = Judged();
  EXPECT_EQ(Row(report, "cgroup.leftovers").verdict, Verdict::kNote);
  ASSERT_EQ(Row(report, "cgroup.leftovers").found.size(), 1U);
  EXPECT_EQ(Row(report, "cgroup.leftovers").found[0].file, kRun + "1");
  host.Forbid(kRun + "1/cell/cgroup.procs", EACCES);  // it may be in use
  EXPECT_EQ(Row(Judged(), "cgroup.leftovers").verdict, Verdict::kReady);
}

// E10, E31: notes that no limit depends on.
TEST_F(HostRules, InternalProcessesAndMissingNsdelegateAreNotes) {
  host.Put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  Report report = Judged();
  EXPECT_EQ(Row(report, "cgroup.internal-processes").verdict, Verdict::kNote);
  EXPECT_THAT(Row(report, "cgroup.internal-processes").fix, HasSubstr("DelegateSubgroup="));
  EXPECT_THAT(Row(report, "cgroup.mount-options").reason, HasSubstr("nsdelegate"));
  EXPECT_EQ(report.verdict, Verdict::kReady);
}

}  // namespace
}  // namespace taskcell::probe
