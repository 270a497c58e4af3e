#include "probe/facts/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kCanary = "hunter2";

std::string Reduced(const std::string& path, std::string_view text) {
  return Reduce({Question::kRead, path}, text).value_or("(none)");
}

// Every kind of file in which something secret can stand beside what the rules look at.
struct Source {
  std::string path;
  std::string text;
  std::string reduced;
};

const Source kSources[] = {
    {"/proc/self/status", "Name:\thunter2\nUid:\t1\t1\t1\t1\nSeccomp:\t2\n",
     "Uid:\t1\t1\t1\t1\nSeccomp:\t2\n"},
    {"/proc/42/mountinfo",
     "1 2 0:5 / /mnt rw - cifs //u:hunter2@h/x rw,username=hunter2\n"
     "3 2 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 hunter2 rw,nsdelegate\n",
     "3 2 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"},
    {"/proc/self/mountinfo", "hunter2 hunter2\nx 2 0:5 / /mnt rw - cifs hunter2 rw\n", "?\n?\n"},
    {"/proc/cmdline", "ro cgroup_disable=memory luks.key=hunter2 x=\"hunter2\"\n",
     "cgroup_disable=memory\n"},
    {"/proc/sys/kernel/core_pattern", "|/usr/bin/dump --key=hunter2 %p\n", "|/usr/bin/dump\n"},
    {"/etc/os-release", "PRETTY_NAME=\"Debian\"\nBUILD_ID=hunter2\n", "PRETTY_NAME=\"Debian\"\n"},
    {"/etc/passwd", "a:hunter2:7:8:hunter2,,:/home/hunter2:/bin/hunter2\n+hunter2\nb:x:hunter2:8\n",
     "a:x:7::::\n"},
    {"/etc/group", "a:hunter2:7:hunter2\ndocker:hunter2:9:ops,dev\n",
     "a:x:7\ndocker:x:9:ops,dev\n"},
    {"/etc/subuid", "# hunter2\na:100000:65536\r\nb:hunter2:5\nc hunter2",
     "\na:100000:65536\r\n"
     "b:??????2:5\nc ??????2"},
    {"/etc/login.defs", "# hunter2\nUID_MIN 1000 hunter2\nUID_MAX hunter2\nCHFN_AUTH hunter2\n",
     "UID_MIN 1000\nUID_MAX ?\n"},
    {"/proc/net/unix",
     "Num RefCount Protocol Flags Type St Inode Path\n"
     "f0: 2 0 00010000 1 1 9 /var/run/docker.sock\nf0: 2 0 00010000 1 1 9 @hunter2\n"
     "f0: 2 0 00010000 1 1 9 /home/hunter2/docker.sock\n",
     "0: 0 0 00010000 0 0 0 /var/run/docker.sock\n"},
    {"/proc/net/tcp", "0: 0100007F:0947 00000000:0000 0A 1 2 hunter2\n1: 0100007F:0016 00:00 0A\n",
     "0: 0100007F:0947 0 0A\n"},
    {"/etc/systemd/system/user@.service.d/x.conf",
     "# hunter2\n[Service]\nEnvironment=A=hunter2 \\\n  Delegate=hunter2\nDelegate=cpu\n"
     "ExecStart=/bin/x --password hunter2\n[Unit]\nDescription=hunter2\nDelegate=hunter2\n",
     "[Service]\nDelegate=cpu\n"},
    {"/run/systemd/transient/job.service",
     "[Service]\nNoNewPrivileges=yes\nLoadCredential=hunter2\nRestrictNamespaces=~user\n",
     "[Service]\nNoNewPrivileges=yes\n[Service]\nRestrictNamespaces=~user\n"},
};

TEST(ReduceTest, NothingSecretIsKeptAndWhatIsLookedAtIs) {
  for (const Source& source : kSources) {
    ASSERT_THAT(source.text, HasSubstr(std::string(kCanary))) << source.path;
    std::string reduced = Reduced(source.path, source.text);
    EXPECT_EQ(reduced, source.reduced) << source.path;
    EXPECT_THAT(reduced, Not(HasSubstr(std::string(kCanary)))) << source.path;
    EXPECT_EQ(Reduced(source.path, reduced), reduced) << "again: " << source.path;
  }
}

TEST(ReduceTest, WhatTheKernelWritesOfItselfStays) {
  for (const char* path :
       {"/proc/cgroups", "/proc/swaps", "/proc/self/cgroup", "/proc/self/uid_map",
        "/proc/self/attr/current", "/proc/sys/user/max_user_namespaces", "/sys/fs/selinux/enforce",
        "/sys/fs/cgroup/a/memory.max", "/cg/cgroup.procs", "/cg/pids.current", "/cg/cpu.max"})
    EXPECT_EQ(Reduced(path, "a b\n\nc"), "a b\n\nc") << path;
}

TEST(ReduceTest, AnEmptyTextStaysEmptyEverywhere) {
  for (const Source& source : kSources) {
    std::string reduced = Reduced(source.path, "");
    EXPECT_EQ(Trim(reduced), "") << source.path;
  }
}

TEST(ReduceTest, FilesWithoutARuleAreLeftOut) {
  for (const char* path : {"/proc/self/environ", "/proc/1/cmdline", "/etc/shadow", "/etc/gshadow",
                           "/root/.docker/config.json", "/etc/systemd/system/x.service/y", "/"})
    EXPECT_FALSE(Reduce({Question::kRead, path}, "x").has_value()) << path;
}

TEST(ReduceTest, DirectoriesGiveTheNamesLookedForAlone) {
  std::string names("10-a.conf\0hunter2\0b.conf\0", 24);
  EXPECT_EQ(Reduce({Question::kList, "/run/systemd/system/a.service.d"}, names),
            std::string("10-a.conf\0b.conf\0", 17));
  std::string libraries("libsystemd-shared-252.so\0hunter2\0", 33);
  EXPECT_EQ(Reduce({Question::kList, "/usr/lib/systemd"}, libraries),
            std::string("libsystemd-shared-252.so\0", 25));
  std::string run = "run-0123456789abcdef0123456789abcdef";
  EXPECT_EQ(
      Reduce({Question::kList, "/sys/fs/cgroup/x"}, Text("hunter2", '\0', run, '\0', run, "0\0")),
      Text(run, '\0'));
}

TEST(ReduceTest, LiveFactsLoseValuesOfTheEnvironment) {
  LiveFacts facts;
  facts.runtime_directory = "hunter2";
  facts.engine_error = "DOCKER_HOST: 'tcp://u:hunter2@h' is not a unix socket";
  LiveFacts reduced = probe::Reduced(facts);
  EXPECT_THAT(ToJson(reduced), Not(HasSubstr(std::string(kCanary))));
  EXPECT_THAT(reduced.engine_error, HasSubstr("DOCKER_HOST"));
  EXPECT_FALSE(reduced.runtime_directory.empty());
  facts.engine_error = "the current context 'x' of /c.json: 'ssh://hunter2' is not a unix socket";
  facts.runtime_directory = "/run/user/1500";
  reduced = probe::Reduced(facts);
  EXPECT_THAT(ToJson(reduced), Not(HasSubstr(std::string(kCanary))));
  EXPECT_EQ(reduced.runtime_directory, "/run/user/1500");
  EXPECT_EQ(probe::Reduced(LiveFacts{}).engine_error, "");
}

}  // namespace
}  // namespace taskcell::probe
