#include "probe/delegate/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/text.h"
#include "probe/delegate/print.h"
#include "tests/unit/probe/rules/good_host.h"

namespace taskcell::probe::delegate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const Target kUser = {"agent1", GoodHost::kUser, 1501};

Plan PlanOf(test::MemoryHost& host, const Target& user = kUser) {
  return MakePlan(ReadFacts(host, user), user);
}

std::vector<std::string> Commands(const Plan& plan, std::string (*line_of)(const Change&)) {
  std::vector<std::string> commands;
  for (const Step& step : plan.steps) {
    for (const Change& change : step.changes) {
      std::string line = line_of(change);
      if (!line.empty()) commands.push_back(line);
    }
  }
  return commands;
}
std::vector<std::string> Commands(const Plan& plan) { return Commands(plan, CommandOf); }

std::string Notes(const Plan& plan) {
  std::string text;
  for (const Note& each : plan.notes) text += Text(each.pending ? "! " : "- ", each.text, "\n");
  return text;
}

std::string FileText(const Plan& plan, std::string_view name) {
  for (const Step& step : plan.steps) {
    for (const Change& change : step.changes) {
      if (change.kind == ChangeKind::kFile && change.path.ends_with(name)) return change.text;
    }
  }
  return "(no such file)";
}

constexpr std::string_view kVendorUnit = "/usr/lib/systemd/system/user@.service";

// The unified hierarchy of a systemd host, with the user's manager running and given everything.
class SystemdHost : public testing::Test {
 protected:
  void SetUp() override {
    host.Put(std::string(kVendorUnit), "[Service]\nDelegate=pids memory cpu\n");
    host.Put("/usr/bin/systemctl", "", 0, 0755);
    host.Put("/usr/bin/loginctl", "", 0, 0755);
  }
  void StopManager() {
    for (const std::string& each : {GoodHost::kScope, GoodHost::kApp, GoodHost::kManager})
      host.Remove(each);
    host.Remove("/run/user/1500/bus");
    host.Remove("/run/user/1500");
  }
  GoodHost host;
};

TEST_F(SystemdHost, FullyDelegatedIsNothingToDo) {
  Plan plan = PlanOf(host);
  EXPECT_TRUE(plan.complete()) << PlanText(plan);
  EXPECT_THAT(plan.steps, IsEmpty());
  EXPECT_THAT(PlanText(plan), HasSubstr("there is nothing to do"));
  EXPECT_THAT(Notes(plan), HasSubstr("- the manager ends with the user's last session"));
  host.Put("/var/lib/systemd/linger/agent1", "");
  EXPECT_EQ(Notes(PlanOf(host)), "");
}

TEST_F(SystemdHost, AControllerThatTheManagerIsNotGivenIsADropInOfThisUsersAlone) {
  host.Put(std::string(kVendorUnit), "[Service]\nDelegate=pids memory\n");
  host.Cgroup(GoodHost::kRoot + "/user.slice", 0, "cpu io memory pids", "memory pids");
  for (const std::string& each : {GoodHost::kSlice, GoodHost::kManager})
    host.Cgroup(each, each == GoodHost::kSlice ? 0 : GoodHost::kUser, "memory pids", "memory pids");
  Plan plan = PlanOf(host);
  EXPECT_THAT(Commands(plan),
              ElementsAre("mkdir -p /etc/systemd/system/user@1500.service.d",
                          "cat >/etc/systemd/system/user@1500.service.d/taskcell.conf <<'END'\n"
                          "[Service]\nDelegate=cpu cpuset io memory pids\nEND\n"
                          "chmod 0644 /etc/systemd/system/user@1500.service.d/taskcell.conf",
                          "/usr/bin/systemctl daemon-reload"));
  EXPECT_THAT(Commands(plan, UndoOf),
              ElementsAre("rmdir /etc/systemd/system/user@1500.service.d",
                          "/usr/bin/systemctl daemon-reload",
                          "rm /etc/systemd/system/user@1500.service.d/taskcell.conf"));
  // A running manager is not restarted for it: that would end what runs there.
  EXPECT_THAT(Notes(plan), HasSubstr("! what a running manager has stays as it is"));
  EXPECT_FALSE(plan.complete());
  EXPECT_TRUE(plan.by_manager);

  // With the drop-in in place only the new login is left.
  host.Put("/etc/systemd/system/user@1500.service.d/taskcell.conf",
           "[Service]\nDelegate=cpu cpuset io memory pids\n");
  plan = PlanOf(host);
  EXPECT_THAT(plan.steps, IsEmpty());
  EXPECT_FALSE(plan.complete());
  EXPECT_THAT(PlanText(plan), HasSubstr("what is left is not for a program to do"));
}

TEST_F(SystemdHost, WhatElseWasPreparedIsNoAnswer) {
  host.Put(std::string(kVendorUnit), "[Service]\nDelegate=pids memory\n");
  StopManager();
  host.Cgroup(GoodHost::kRoot + "/taskcell", 0, "cpu memory pids", "cpu memory pids");
  host.Cgroup(GoodHost::kRoot + "/taskcell/uid-1500", GoodHost::kUser, "cpu memory pids", "");
  Plan plan = PlanOf(host);
  ASSERT_EQ(plan.steps.size(), 2U);
  EXPECT_EQ(plan.steps[0].what, "Delegate= for user@1500.service");
  EXPECT_EQ(plan.steps[1].what, "lingering");
}

TEST_F(SystemdHost, WithoutALoginTheManagerRunsByLingering) {
  StopManager();
  Plan plan = PlanOf(host);
  EXPECT_THAT(Commands(plan), ElementsAre("/usr/bin/loginctl enable-linger agent1"));
  EXPECT_THAT(Commands(plan, UndoOf), ElementsAre("/usr/bin/loginctl disable-linger agent1"));
  // Not while processes of the user are in the manager's cgroup.
  EXPECT_EQ(plan.steps[0].changes[0].text, GoodHost::kManager);
  host.Put("/var/lib/systemd/linger/agent1", "");
  EXPECT_THAT(Commands(PlanOf(host)), ElementsAre("/usr/bin/systemctl start user@1500.service"));
}

TEST_F(SystemdHost, ANameIsNeverAnOptionOrMoreThanOneWord) {
  StopManager();
  EXPECT_THAT(Commands(PlanOf(host, {"-x", 1500, 1500})),
              ElementsAre("/usr/bin/loginctl enable-linger -- -x"));
  EXPECT_THAT(Commands(PlanOf(host, {"a b;reboot'", 1500, 1500})),
              ElementsAre("/usr/bin/loginctl enable-linger 'a b;reboot'\\'''"));
}

TEST_F(SystemdHost, DelegateSwitchedOffIsSwitchedOnAgain) {
  StopManager();
  host.Put("/etc/systemd/system/user@1500.service.d/site.conf", "[Service]\nDelegate=no\n");
  Plan plan = PlanOf(host);
  ASSERT_EQ(plan.steps.size(), 2U);
  EXPECT_THAT(plan.steps[0].why,
              HasSubstr("switched off in /etc/systemd/system/user@1500.service.d/site.conf"));
  EXPECT_EQ(plan.steps[1].what, "lingering");
  // What counts after ours, whatever ours says, is not ours to change.
  host.Put("/etc/systemd/system/user@.service.d/zz.conf", "[Service]\nDelegate=false\n");
  plan = PlanOf(host);
  EXPECT_THAT(plan.steps, IsEmpty());
  ASSERT_EQ(plan.obstacles.size(), 1U);
  EXPECT_THAT(plan.obstacles[0].reason, HasSubstr("/etc/systemd/system/user@.service.d/zz.conf"));
}

TEST_F(SystemdHost, OneControllerThatTheKernelLacksKeepsNothingElseBack) {
  StopManager();
  host.Cgroup(GoodHost::kRoot, 0, "memory pids", "memory pids", "-", "1");
  Plan plan = PlanOf(host);
  ASSERT_EQ(plan.obstacles.size(), 1U);
  EXPECT_THAT(plan.obstacles[0].reason, HasSubstr("no cpu controller"));
  EXPECT_THAT(Commands(plan), ElementsAre("/usr/bin/loginctl enable-linger agent1"));
}

TEST_F(SystemdHost, AMissingBusIsLeftToThePackageManager) {
  host.Remove("/run/user/1500/bus");
  EXPECT_THAT(Notes(PlanOf(host)), HasSubstr("! the user manager has no D-Bus socket"));
}

TEST_F(SystemdHost, WhatTheKernelLacksIsNoMatterOfDelegation) {
  host.Cgroup(GoodHost::kRoot, 0, "cpu pids", "cpu pids", "-", "1");
  for (const std::string& each : {GoodHost::kRoot + "/user.slice", GoodHost::kSlice})
    host.Cgroup(each, 0, "cpu pids", "cpu pids");
  host.Cgroup(GoodHost::kManager, GoodHost::kUser, "cpu pids", "cpu pids");
  host.Put("/proc/cmdline", "quiet cgroup_disable=memory\n");
  Plan plan = PlanOf(host);
  EXPECT_THAT(plan.steps, IsEmpty());
  ASSERT_EQ(plan.obstacles.size(), 1U);
  EXPECT_THAT(plan.obstacles[0].fix, HasSubstr("cgroup_disable=memory"));
  EXPECT_THAT(PlanText(plan), HasSubstr("# in the way: the memory controller is switched off"));
}

// The unified hierarchy without a service manager, and the caller's shell in a cgroup of root's.
class PlainHost : public testing::Test {
 protected:
  const std::string kRoot = "/sys/fs/cgroup";
  const std::string kOwn = kRoot + "/taskcell/uid-1500";

  void SetUp() override {
    host.Process(0, "0::/1\n", test::kUnifiedMount);
    host.Put("/etc/passwd", "agent1:x:1500:1501::/home/a:/bin/sh\n");
    host.Cgroup(kRoot, 0, "cpuset cpu io memory hugetlb pids", "", "-", "1");
    host.Cgroup(kRoot + "/1", 0, "", "", "domain", "4242");
  }
  void Prepare() {
    host.Cgroup(kRoot, 0, "cpu memory pids", "cpu memory pids", "-", "1");
    host.Cgroup(kRoot + "/taskcell", 0, "cpu memory pids", "cpu memory pids");
    host.Cgroup(kOwn, 1500, "cpu memory pids", "");
    host.Cgroup(kOwn + "/supervisor", 1500, "", "");
  }
  test::MemoryHost host;
};

TEST_F(PlainHost, HandsTheControllersDownAndGivesOneDirectoryAway) {
  Plan plan = PlanOf(host);
  ASSERT_EQ(plan.steps.size(), 2U);
  plan.steps.pop_back();  // at boot
  EXPECT_THAT(
      Commands(plan),
      ElementsAre(
          "echo '+memory +pids +cpu +cpuset +io' >/sys/fs/cgroup/cgroup.subtree_control",
          "mkdir -p /sys/fs/cgroup/taskcell",
          "echo '+memory +pids +cpu +cpuset +io' >/sys/fs/cgroup/taskcell/cgroup.subtree_control",
          "mkdir -p " + kOwn, "mkdir -p " + kOwn + "/supervisor", "chown 1500:1501 " + kOwn,
          "chown 1500:1501 " + kOwn + "/cgroup.procs",
          "chown 1500:1501 " + kOwn + "/cgroup.threads",
          "chown 1500:1501 " + kOwn + "/cgroup.subtree_control",
          "chown 1500:1501 " + kOwn + "/supervisor",
          "chown 1500:1501 " + kOwn + "/supervisor/cgroup.procs",
          "chown 1500:1501 " + kOwn + "/supervisor/cgroup.threads",
          "chown 1500:1501 " + kOwn + "/supervisor/cgroup.subtree_control"));
  EXPECT_THAT(plan.supervisors, ElementsAre(kOwn + "/supervisor"));
  EXPECT_FALSE(plan.by_manager);
  EXPECT_THAT(PlanText(plan), Not(HasSubstr("systemctl")));
}

TEST_F(PlainHost, WhenPreparedOnlyBootIsLeft) {
  Prepare();
  Plan plan = PlanOf(host);
  ASSERT_EQ(plan.steps.size(), 1U);
  host.Put("/etc/taskcell/delegate-uid-1500.sh", FileText(plan, ".sh"), 0, 0755);
  plan = PlanOf(host);
  EXPECT_TRUE(plan.complete()) << PlanText(plan);
  EXPECT_THAT(Notes(plan), HasSubstr(">/sys/fs/cgroup/taskcell/uid-1500/supervisor/cgroup.procs"));
}

TEST_F(PlainHost, InAContainerItIsItsMakersToGive) {
  host.Put(kRoot + "/cgroup.type", "domain\n");
  Plan plan = PlanOf(host);
  EXPECT_THAT(plan.steps, IsEmpty());
  ASSERT_FALSE(plan.obstacles.empty());
  EXPECT_EQ(plan.obstacles[0].who, cgroup::Who::kOuter);
}

// v1 controllers: the cpu hierarchy holds two of the kernel's, and memory is in another.
class V1Host : public testing::Test {
 protected:
  void SetUp() override {
    host.Process(0, "8:pids:/\n4:memory:/jobs/77\n1:cpu,cpuacct:/\n0::/\n",
                 "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                 "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                 "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                 "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n");
    host.Put("/etc/passwd", "agent1:x:1500:1501::/home/a:/bin/sh\n");
    for (const char* name : {"cpu", "memory", "pids"}) host.Directory(Root(name));
  }
  void Unified() {
    host.Put("/proc/self/mountinfo",
             host.Read("/proc/self/mountinfo", 4096).text +
                 "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    host.Cgroup("/sys/fs/cgroup/unified", 0, "hugetlb", "", "-", "1 4242");
  }
  static std::string Root(const std::string& name) { return "/sys/fs/cgroup/" + name; }
  void Prepare(const std::string& name) {
    host.Directory(Root(name) + "/taskcell");
    host.V1Cgroup(Root(name) + "/taskcell/uid-1500", name, 1500);
  }
  test::MemoryHost host;
};

std::vector<std::string> V1Commands(const std::string& name) {
  const std::string ours = Text("/sys/fs/cgroup/", name, "/taskcell");
  return {"mkdir -p " + ours, Text("mkdir -p ", ours, "/uid-1500"),
          Text("chown 1500:1501 ", ours, "/uid-1500")};
}

TEST_F(V1Host, ADirectoryOnEachHierarchyWithALimitOfOurs) {
  for (bool hybrid : {false, true}) {
    if (hybrid) Unified();
    Plan plan = PlanOf(host);
    EXPECT_EQ(plan.mode, hybrid ? cgroup::Mode::kHybrid : cgroup::Mode::kV1);
    ASSERT_EQ(plan.steps.size(), 4U) << PlanText(plan);
    plan.steps.pop_back();
    std::vector<std::string> wanted;
    for (const char* name : {"memory", "pids", "cpu"})
      for (const std::string& each : V1Commands(name)) wanted.push_back(each);
    EXPECT_EQ(Commands(plan), wanted);
    EXPECT_THAT(plan.supervisors, IsEmpty());
  }
}

TEST_F(V1Host, OnlyWhatIsMissing) {
  Prepare("memory");
  Prepare("pids");
  Plan plan = PlanOf(host);
  ASSERT_EQ(plan.steps.size(), 2U);
  EXPECT_THAT(plan.steps[0].what, HasSubstr("/sys/fs/cgroup/cpu"));
  // The script makes them all: after a boot none is there.
  EXPECT_THAT(FileText(plan, ".sh"), HasSubstr("/sys/fs/cgroup/memory/taskcell/uid-1500\n"));
}

TEST_F(V1Host, AtBootByWhateverInitThereIs) {
  for (const char* name : {"memory", "pids", "cpu"}) Prepare(name);
  const std::string script = "/etc/taskcell/delegate-uid-1500.sh";
  Plan plan = PlanOf(host);
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.steps[0].changes.back().path, script);
  EXPECT_THAT(Notes(plan), HasSubstr("whatever starts it must run " + script));
  host.Directory("/etc/cron.d");
  host.Put("/usr/sbin/crond", "", 0, 0755);
  EXPECT_EQ(FileText(PlanOf(host), "/etc/cron.d/taskcell-uid-1500"),
            Text("@reboot root /bin/sh ", script, "\n"));
  host.Directory("/etc/local.d");
  plan = PlanOf(host);
  EXPECT_THAT(FileText(plan, "/etc/local.d/taskcell-uid-1500.start"), HasSubstr("chown 1500:1501"));
  EXPECT_EQ(FileText(plan, ".sh"), "(no such file)");
  host.Directory("/run/systemd/system");
  plan = PlanOf(host);
  EXPECT_THAT(FileText(plan, "/etc/systemd/system/taskcell-uid-1500.service"),
              HasSubstr("ExecStart=/bin/sh " + script));
  EXPECT_THAT(Commands(plan),
              testing::Contains("/usr/bin/systemctl enable taskcell-uid-1500.service"));
  EXPECT_FALSE(plan.by_manager);  // on v1 no manager delegates
}

TEST_F(V1Host, PreparedWithItsScriptIsNothingToDo) {
  for (const char* name : {"memory", "pids", "cpu"}) Prepare(name);
  host.Directory("/etc/taskcell");
  host.Put("/etc/taskcell/delegate-uid-1500.sh", FileText(PlanOf(host), ".sh"), 0, 0755);
  EXPECT_TRUE(PlanOf(host).complete());
}

TEST_F(V1Host, PlanAsJson) {
  std::string json = PlanJson(PlanOf(host), {});
  EXPECT_THAT(json, HasSubstr(R"("user":{"name":"agent1","uid":1500,"gid":1501})"));
  EXPECT_THAT(json, HasSubstr(R"("hierarchy":"v1","complete":false)"));
  EXPECT_THAT(json, HasSubstr(R"("undo":["rmdir /sys/fs/cgroup/memory/taskcell",)"));
  EXPECT_THAT(json, HasSubstr(R"("live":null)"));
}

}  // namespace
}  // namespace taskcell::probe::delegate
