// Native cells on kernels and under filters that lack a call: they work without it or refuse by
// name, and never run weaker in silence.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/landlock.h"
#include "tests/support/launch.h"
#include "tests/support/on_terminal.h"
#include "tests/support/syscall_faults.h"
#include "tests/support/whole_proc_refused.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

class DegradedNativeTest : public LaunchTest {
 protected:
  Outcome Without(const std::vector<SyscallFault>& faults,
                  const std::vector<std::string>& arguments = {"--", "/bin/echo", "ran"}) {
    RunOptions options;
    options.in_child = [&faults] {
      if (!InstallFaults(faults)) ::_exit(90);
    };
    return Launch(arguments, options);
  }
};

// A kernel feature and the calls that are refused where it is absent (ENOSYS, or what else such a
// kernel says) or forbidden (EPERM, as by the filter of a container around this one).
struct Feature {
  const char* name;
  std::vector<SyscallFault> calls;
};
struct Lack {
  const char* feature;
  std::vector<SyscallFault> faults;
};
void PrintTo(const Lack& lack, std::ostream* out) { *out << lack.feature; }

constexpr uint32_t kWithCgroup = CLONE_ARGS_SIZE_VER2;  // clone3's second argument

std::vector<Lack> EveryLack() {
  const Feature features[] = {
      {"Openat2", {{SYS_openat2, ENOSYS}}},
      {"Clone3", {{SYS_clone3, ENOSYS}}},
      {"MountSetattr", {{SYS_mount_setattr, ENOSYS}}},
      {"Pidfd",
       {{SYS_pidfd_send_signal, ENOSYS},
        {SYS_pidfd_open, ENOSYS},
        {SYS_waitid, EINVAL, 0, P_PIDFD}}},
      {"Landlock",
       {{SYS_landlock_create_ruleset, ENOSYS},
        {SYS_landlock_add_rule, ENOSYS},
        {SYS_landlock_restrict_self, ENOSYS}}},
      {"CloseRange", {{SYS_close_range, ENOSYS}}},
      {"CloexecOfCloseRange", {{SYS_close_range, EINVAL}}},
      {"Leases", {{SYS_fcntl, EINVAL, 1, F_SETLEASE}}},
      {"CopyFileRange", {{SYS_copy_file_range, ENOSYS}}},
      {"SharedBlocks", {{SYS_ioctl, EOPNOTSUPP, 1, static_cast<uint32_t>(FICLONE)}}},
      // Only on the unified hierarchy are cells born in their cgroup.
      {"CloneIntoCgroup", {{SYS_clone3, E2BIG, 1, kWithCgroup}}},
  };
  std::vector<Lack> lacks;
  for (const Feature& feature : features) {
    lacks.push_back({feature.name, feature.calls});
    Lack forbidden{feature.name, feature.calls};
    for (SyscallFault& fault : forbidden.faults) fault.err = EPERM;
    lacks.push_back(std::move(forbidden));
  }
  Lack all{"Everything", {}};
  for (const Feature& feature : features) {
    for (const SyscallFault& fault : feature.calls) {
      // One fault a call: clone3 is not there at all, and so is close_range.
      const bool is_known =
          std::any_of(all.faults.begin(), all.faults.end(),
                      [&](const SyscallFault& each) { return each.number == fault.number; });
      if (!is_known) all.faults.push_back(fault);
    }
  }
  lacks.push_back(std::move(all));
  return lacks;
}

class LackTest : public DegradedNativeTest, public testing::WithParamInterface<Lack> {};

// With everything a cell can be made from: each was verified like any other.
TEST_P(LackTest, TheCellIsWholeAllTheSame) {
  MakeFile("agent/SOUL.md", "soul ");
  std::string report = scratch_ + "/report.json";
  const std::string out = scratch_ + "/out";
  std::filesystem::create_directory(out);
  std::filesystem::permissions(out, std::filesystem::perms::all);
  MakeFile("linked/file", "linked ");
  std::filesystem::create_symlink("file", scratch_ + "/linked/link");
  MakeFile("data", "data ");
  constexpr int kData = 77;
  const std::vector<std::string> arguments = {
      "--agent-dir=" + scratch_ + "/agent",
      "--ro=" + MakeFile("in/file", "in ") + ":/in/file",
      "--ro=" + scratch_ + "/linked:/linked:nosymfollow",
      "--bind-rw=" + out + ":/out",
      Text("--file=/run/data:", kData),
      "--tmpfs=/more:1M",
      "--report=" + report,
      "--",
      "/bin/sh",
      "-c",
      "cat /agent/SOUL.md /in/file /linked/file /run/data; cat /linked/link 2>/dev/null || "
      "echo x >/more/x && echo y >/out/y && echo ran"};
  RunOptions options;
  options.in_child = [&] {
    const int data = ::open((scratch_ + "/data").c_str(), O_RDONLY | O_CLOEXEC);
    // NOLINTNEXTLINE(android-cloexec-dup2): for the launcher
    if (::dup2(data, kData) != kData || !InstallFaults(GetParam().faults)) ::_exit(90);
  };
  Outcome ran = Launch(arguments, options);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "soul in linked data ran\n");
  EXPECT_TRUE(std::filesystem::exists(out + "/y"));
  std::ifstream file(report);
  std::string told{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(told, HasSubstr(R"("memory_bytes":4294967296)"));
  EXPECT_THAT(told, HasSubstr(R"("keyring":"own")"));
}

TEST_P(LackTest, AProgramHasATerminalOfItsOwn) {
  OnTerminal launcher(
      Command({"--tty", "--timeout=60s", "--", "/bin/sh", "-c", "tty; read x; echo inside:$x"}),
      [&] {
        EnterDelegatedCgroup(user_->uid);
        if (::setgroups(0, nullptr) != 0 || ::setresgid(user_->gid, user_->gid, user_->gid) != 0 ||
            ::setresuid(user_->uid, user_->uid, user_->uid) != 0 ||
            !InstallFaults(GetParam().faults))
          ::_exit(90);
      });
  EXPECT_THAT(launcher.ScreenUntil("/dev/pts/0"), HasSubstr("/dev/pts/0"));
  launcher.Type("one\n");
  EXPECT_THAT(launcher.WholeScreen(), HasSubstr("inside:one"));
  EXPECT_EQ(launcher.Wait(), 0);
}

TEST_P(LackTest, ARootDirectoryIsUsedAndItsLinksAreRefused) {
  std::string rootfs = MakeRootfs();
  std::vector<std::string> arguments = {"--rootfs=" + rootfs, "--", "/launch", "--version"};
  Outcome ran = Without(GetParam().faults, arguments);
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::filesystem::remove(rootfs + "/workspace");
  std::filesystem::create_symlink("/etc", rootfs + "/workspace");
  Outcome refused = Without(GetParam().faults, arguments);
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.err, HasSubstr("symbolic link"));
}

INSTANTIATE_TEST_SUITE_P(Each, LackTest, testing::ValuesIn(EveryLack()), [](const auto& row) {
  bool forbidden = row.param.faults[0].err == EPERM;
  return Text(row.param.feature, forbidden ? "Forbidden" : "Absent");
});

TEST_F(DegradedNativeTest, NamespacesThatAreForbiddenAreNamedWhicheverCallMakesThem) {
  constexpr uint32_t kFlags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                              CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD | SIGCHLD;
  Outcome ran = Without({{SYS_clone3, EPERM}, {SYS_clone, EPERM, 0, kFlags}});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("clone"));
  EXPECT_THAT(ran.err, HasSubstr("seccomp filter or security module"));
  EXPECT_EQ(ran.out, "");
}

// As a kernel before 5.6 answers. The cgroup namespace is then made alone; only that this kernel
// does have time namespaces, and the cell none of its own, keeps it from being taken for such a
// kernel's.
TEST_F(DegradedNativeTest, WhereNoTimeNamespaceIsMadeTheCgroupNamespaceIsAllTheSame) {
  TASKCELL_REQUIRE(::access("/proc/self/ns/time", F_OK) == 0,
                   "needs a kernel with time namespaces");
  const SyscallFault no_time{SYS_unshare, EINVAL, 0, CLONE_NEWCGROUP | CLONE_NEWTIME};
  Outcome ran = Without({no_time});
  EXPECT_EQ(ran.status, 125);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("namespace.time"));
  EXPECT_THAT(ran.err, testing::Not(HasSubstr("unshare")));
  EXPECT_THAT(ran.err, testing::Not(HasSubstr("namespace.cgroup")));
  Outcome none_left = Without({{SYS_unshare, ENOSPC, 0, CLONE_NEWCGROUP | CLONE_NEWTIME}});
  EXPECT_EQ(none_left.status, 125);
  EXPECT_THAT(none_left.err, HasSubstr("no more namespaces can be made"));
  EXPECT_THAT(none_left.err, testing::Not(HasSubstr("No space"))) << "it is no disk that is full";
  Outcome neither = Without({no_time, {SYS_unshare, EINVAL, 0, CLONE_NEWCGROUP}});
  EXPECT_EQ(neither.status, 125);
  EXPECT_THAT(neither.err, HasSubstr("stage 'cgroup'"));
}

// Not switched on at boot.
TEST_F(DegradedNativeTest, WithoutLandlockTheCellRunsAndItsOtherWallsHold) {
  Outcome ran = Without({{SYS_landlock_create_ruleset, EOPNOTSUPP}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "ran\n");
}

// A directory that lies ready in a socket would be the host's root (CVE-2024-21626).
TEST_F(DegradedNativeTest, WithoutLandlockASocketThatReceivesIsNoStandardStream) {
  auto run = [this](bool landlock, bool ended) {
    RunOptions options;
    options.in_child = [landlock, ended] {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ::_exit(90);
      if (ended && ::shutdown(ends[0], SHUT_RD) != 0) ::_exit(91);
      if (::dup2(ends[0], STDIN_FILENO) < 0 || ::fcntl(ends[1], F_SETFD, 0) != 0) ::_exit(92);
      if (!landlock && !InstallFaults({{SYS_landlock_create_ruleset, ENOSYS}})) ::_exit(93);
    };
    return Launch({"--", "/bin/echo", "ran"}, options);
  };
  Outcome refused = run(false, false);
  EXPECT_EQ(refused.status, 125) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("standard input is a socket"));
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(run(false, true).out, "ran\n") << "as systemd's journal";
  TASKCELL_REQUIRE(sys::LandlockAbi() > 0, "needs Landlock");
  EXPECT_EQ(run(true, false).out, "ran\n");
}

TEST_F(DegradedNativeTest, WithoutSignalsByPidfdAProgramIsStillEndedInTime) {
  for (int err : {ENOSYS, EPERM}) {
    RunOptions options;
    options.in_child = [err] {
      if (!InstallFaults({{SYS_pidfd_send_signal, err}})) ::_exit(90);
    };
    Outcome ran = Launch({"--timeout=3s", "--kill-after=100ms", "--", "/bin/sh", "-c",
                          "trap '' TERM; echo ran; sleep 1000"},
                         options);
    EXPECT_EQ(ran.status, 124) << ran.err;
    EXPECT_EQ(ran.out, "ran\n");
  }
}

constexpr long kMountCalls[] = {SYS_fsopen, SYS_open_tree, SYS_move_mount, SYS_mount_setattr};

TEST_F(DegradedNativeTest, WithoutOneOfTheNewerMountCallsTheOldOneServes) {
  for (long number : kMountCalls) {
    for (int err : {ENOSYS, EPERM}) {
      Outcome ran = Without({{static_cast<int>(number), err}});
      EXPECT_EQ(ran.status, 0) << number << ": " << ran.err;
      EXPECT_EQ(ran.out, "ran\n");
    }
  }
}

// Asked for or not, and by whichever calls: the same cell, of which the report says what it lacks.
TEST_F(DegradedNativeTest, WhereAWholeProcIsRefusedTheCellHasTheProcessesPartAndSaysSo) {
  const std::string report = scratch_ + "/report.json";
  const std::string show =
      "ls /proc | grep -v '^[0-9]' | tr '\n' ' '; grep -c 'proc.*subset=pid' /proc/self/mountinfo; "
      "test -e /proc/1 || echo hidden";
  auto run = [&](const char* choice, const RunOptions& options) {
    Outcome ran = Launch({choice, "--report=" + report, "--", "/bin/sh", "-c", show}, options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  };
  EXPECT_THAT(run("--proc=full", {}), HasSubstr("meminfo"));  // control
  EXPECT_THAT(ReadText(report), HasSubstr(R"("proc":"full")"));
  struct Row {
    const char* choice;
    bool newer_calls;
    int refused;
  };
  for (const Row& row :
       {Row{"--proc=full", true, 1}, Row{"--proc=full", false, 1}, Row{"--proc=pids", true, 0}}) {
    SCOPED_TRACE(Text(row.choice, row.newer_calls ? "" : " by mount(2)"));
    WholeProcRefused kernel;
    RunOptions options;
    options.in_child = [&kernel, &row] {
      std::vector<SyscallFault> faults;
      for (long number : kMountCalls) faults.push_back({static_cast<int>(number), ENOSYS});
      if (!kernel.Install() || (!row.newer_calls && !InstallFaults(faults))) ::_exit(90);
    };
    EXPECT_EQ(run(row.choice, options), "self thread-self 1\nhidden\n");
    EXPECT_THAT(ReadText(report), HasSubstr(R"("proc":"subset")"));
    EXPECT_EQ(kernel.refused(), row.refused);
  }
}

// Mount points, file systems and options of a cell, without what differs from cell to cell.
std::string MountsOf(const Outcome& ran) {
  std::vector<std::string> lines;
  for (std::string_view line : Split(Trim(ran.out), '\n')) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() < 8) continue;
    lines.push_back(Text(words[3], " ", words[4], " ", words[5], " ", words[7]));
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// In a mount namespace of its own, where a source has another mount below it.
class ClassicMountsTest : public DegradedNativeTest {
 protected:
  Outcome Show(const std::vector<std::string>& arguments, bool with_calls) const {
    std::string below = scratch_ + "/source/below";
    std::filesystem::create_directories(below);
    RunOptions options;
    options.in_child = [below, with_calls] {
      std::vector<SyscallFault> faults;
      for (long number : kMountCalls) faults.push_back({static_cast<int>(number), ENOSYS});
      bool ready = ::unshare(CLONE_NEWNS) == 0 &&
                   ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                   ::mount("test", below.c_str(), "tmpfs", MS_NOEXEC, "size=64k") == 0 &&
                   (with_calls || InstallFaults(faults));
      if (!ready) ::_exit(90);
    };
    return LaunchAsRoot(arguments, options);
  }
};

TEST_F(ClassicMountsTest, TheMountsAreTheSameAndWhatIsBelowASourceIsReadOnlyToo) {
  std::vector<std::string> arguments = {"--ro=" + scratch_ + "/source:/in",
                                        "--bind-rw=" + MakeFile("file", "x") + ":/file",
                                        "--tmpfs=/more:1M",
                                        "--",
                                        "/bin/cat",
                                        "/proc/self/mountinfo"};
  Outcome with = Show(arguments, true);
  ASSERT_EQ(with.status, 0) << with.err;
  EXPECT_THAT(MountsOf(with), HasSubstr("/ /in/below ro,nosuid,nodev,noexec,relatime"));
  Outcome without = Show(arguments, false);
  ASSERT_EQ(without.status, 0) << without.err;
  EXPECT_EQ(MountsOf(without), MountsOf(with));
}

TEST_F(ClassicMountsTest, ARootDirectoryIsMountedThatWayAndItsLinksAreStillRefused) {
  std::string rootfs = MakeRootfs();
  Outcome ran = Show({"--rootfs=" + rootfs, "--", "/launch", "--version"}, false);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("taskcell-launch"));
  std::filesystem::remove(rootfs + "/workspace");
  std::filesystem::create_symlink("/etc", rootfs + "/workspace");
  Outcome refused = Show({"--rootfs=" + rootfs, "--", "/launch", "--version"}, false);
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.err, HasSubstr("symbolic link"));
}

TEST_F(ClassicMountsTest, ASourceInTheFirstPlaceForTheStageIsStillThere) {
  std::string directory = "/mnt/taskcell-stage-test";
  ASSERT_TRUE(std::filesystem::create_directory(directory));
  std::ofstream(directory + "/file") << "seen";
  Outcome ran = Show({"--ro=" + directory + ":/in", "--", "/bin/cat", "/in/file"}, false);
  EXPECT_EQ(ran.out, "seen") << ran.err;
  std::filesystem::remove_all(directory);
}

TEST_F(DegradedNativeTest, ThatThereIsNoLandlockStandsInTheReport) {
  auto abi = [&](const std::vector<SyscallFault>& faults) {
    const std::string report = scratch_ + "/report.json";
    Outcome ran = Without(faults, {"--report=" + report, "--", "/bin/true"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::ifstream file(report);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  EXPECT_THAT(abi({{SYS_landlock_create_ruleset, ENOSYS}}), HasSubstr(R"("landlock_abi":0,)"));
  EXPECT_THAT(abi({}), HasSubstr(Text(R"("landlock_abi":)", sys::LandlockAbi(), ",")));
}

// As in a unit with LockPersonality=yes, or where a filter lets nobody ask for an io class.
TEST_F(DegradedNativeTest, WhatIsOnlyAskedForTheAttestationMayBeForbidden) {
  constexpr uint32_t kAsk = 0xFFFFFFFF;
  for (const SyscallFault& fault :
       {SyscallFault{SYS_personality, EPERM, 0, kAsk}, SyscallFault{SYS_ioprio_get, EPERM}}) {
    Outcome ran = Without({fault});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "ran\n");
  }
}

// A program given a file to read has it all the same, on mounts made by mount(2).
TEST_F(DegradedNativeTest, AFileIsGivenToBeReadWithoutTheNewerMountCalls) {
  const std::string file = MakeFile("given", "content");
  ASSERT_EQ(::chown(file.c_str(), user_->uid, user_->gid), 0);
  RunOptions options;
  options.in_child = [&file] {
    int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::dup2(fd, 0) != 0) ::_exit(90);  // NOLINT(android-cloexec-dup2): given
    if (!InstallFaults({{SYS_mount_setattr, ENOSYS}})) ::_exit(91);
  };
  Outcome ran =
      Launch({"--userns=own", "--", "/bin/sh", "-c", "cat; chmod 666 /proc/self/fd/0"}, options);
  EXPECT_EQ(ran.out, "content") << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("Read-only file system"));
}

}  // namespace
}  // namespace taskcell::test
