#include "tests/support/launch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "launcher/base/text.h"
#include "tests/support/host_guard.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class NativeLaunchTest : public LaunchTest {
 protected:
  std::string Report() const {
    std::ifstream file(scratch_ + "/report.json");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string ReportOption() const { return "--report=" + scratch_ + "/report.json"; }
};

TEST_F(NativeLaunchTest, TheProgramRunsUnprivilegedWithoutGroups) {
  Outcome ran =
      Launch({"--", "/bin/sh", "-c", "id -u; id -g; pwd; hostname; cat /proc/self/status"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::StartsWith("1000\n1000\n/workspace\ntaskcell\n"));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    EXPECT_THAT(ran.out, HasSubstr(std::string(set) + ":\t0000000000000000"));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("NoNewPrivs:\t1"), HasSubstr("Seccomp:\t2")));
}

TEST_F(NativeLaunchTest, RootBecomesNobody) {
  Outcome ran = LaunchAsRoot({"--", "/bin/sh", "-c", "id -u; id -G"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "65534\n65534\n");
}

TEST_F(NativeLaunchTest, TheCallersMaskAndPersonalityStayOutside) {
  RunOptions options;
  options.in_child = [] {
    (void)::umask(0);
    if (::personality(ADDR_NO_RANDOMIZE) < 0) ::_exit(90);
  };
  const std::vector<std::string> script = {"/bin/sh", "-c", "umask; cat /proc/self/personality"};
  EXPECT_EQ(test::Run(script, options).out, "0000\n00040000\n") << "control";
  Outcome ran = Launch({"--", "/bin/sh", "-c", script[2]}, options);
  EXPECT_EQ(ran.out, "0022\n00000000\n") << ran.err;
}

TEST_F(NativeLaunchTest, ASubordinateIdIsAnotherKernelUser) {
  TASKCELL_REQUIRE(::access("/usr/bin/newuidmap", X_OK) == 0, "needs newuidmap (package uidmap)");
  // As nobody but its owner, a 0600 file of the caller is out of reach; under the caller's own id
  // it is not.
  std::string secret = MakeFile("data/secret", "x");
  ASSERT_EQ(::chown(secret.c_str(), user_->uid, user_->gid), 0);
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  std::vector<std::string> rest = {"--ro=" + scratch_ + "/data:/data", ReportOption(), "--",
                                   "/bin/cat", "/data/secret"};
  Outcome own = Launch(rest);
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_THAT(Report(), HasSubstr(R"("uid_separation":"none")"));
  rest.insert(rest.begin(), "--userns=subids");
  Outcome other = Launch(rest);
  EXPECT_EQ(other.status, 1) << other.err;
  EXPECT_THAT(other.err, HasSubstr("Permission denied"));
  EXPECT_THAT(Report(), HasSubstr(R"("uid_separation":"subordinate")"));
}

// As in a systemd unit with NoNewPrivileges=yes: newuidmap gets no privilege.
TEST_F(NativeLaunchTest, WithoutNewPrivilegesASubordinateIdIsOnlyAWish) {
  TASKCELL_REQUIRE(::access("/usr/bin/newuidmap", X_OK) == 0, "needs newuidmap (package uidmap)");
  RunOptions options;
  options.in_child = [] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(90);
  };
  Outcome preferred =
      Launch({"--userns=prefer-subids", ReportOption(), "--", "/bin/true"}, options);
  EXPECT_EQ(preferred.status, 0) << preferred.err;
  EXPECT_THAT(Report(), HasSubstr(R"("uid_separation":"none")"));
  Outcome required = Launch({"--userns=subids", "--", "/bin/true"}, options);
  EXPECT_EQ(required.status, 125);
  EXPECT_THAT(required.err, HasSubstr("no_new_privs is set"));
}

// As after newgrp(1): newuidmap would refuse without a word about groups.
TEST_F(NativeLaunchTest, ACallerInAnotherGroupThanItsAccountsIsToldSoAndWhatToDo) {
  TASKCELL_REQUIRE(::access("/usr/bin/newuidmap", X_OK) == 0, "needs newuidmap (package uidmap)");
  RunOptions options;
  options.user = *user_;
  options.user->gid = 60;
  Outcome ran = test::Run(Command({"--userns=subids", "--", "/bin/true"}), options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("your group is 60, and newuidmap serves you only in the group of "
                                 "your account, " +
                                 std::to_string(user_->gid)));
  EXPECT_EQ(Launch({"--userns=subids", "--", "/bin/true"}).status, 0);  // control
}

TEST_F(NativeLaunchTest, ARootDirectoryThatIsTooDeepIsToldWhatToDo) {
  constexpr int kDepth = 64;
  std::string deep = MakeRootfs() + "/etc";  // the second of them
  for (int i = 3; i <= kDepth; ++i) deep += "/d";
  std::filesystem::create_directories(deep);
  const std::vector<std::string> command = {"--rootfs=" + scratch_ + "/rootfs", "--", "/launch",
                                            "--version"};
  EXPECT_EQ(Launch(command).status, 0);
  std::filesystem::create_directories(deep + "/d");
  Outcome ran = Launch(command);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("is more than 64 directories deep"),
                             HasSubstr("out of the root directory")));
}

TEST_F(NativeLaunchTest, ACallerInRootsGroupIsToldSoAndWhatToDo) {
  RunOptions options;
  options.user = *user_;
  options.user->gid = 0;
  Outcome ran = test::Run(Command({"--userns=own", "--", "/bin/true"}), options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("your group is root's"), HasSubstr("--regid GROUP")));
}

TEST_F(NativeLaunchTest, OnlyStreamsAreTakenAsStandardStreams) {
  const std::string file = MakeFile("input", "x");
  struct Case {
    std::string path;
    int flags;
    std::string reason;  // empty: it is taken
  };
  for (const Case& each : {Case{file, O_RDONLY, ""}, Case{"/dev/zero", O_RDWR, ""},
                           Case{file, O_PATH, "O_PATH"}, Case{"/", O_RDONLY, "is a directory"},
                           Case{"/proc/1/status", O_RDONLY, "kernel's own (proc)"},
                           Case{"/proc/self/ns/net", O_RDONLY, "kernel's own (nsfs)"},
                           Case{"/dev/ptmx", O_RDWR, "is a device"}}) {
    RunOptions options;
    options.in_child = [&each] {
      int opened = ::open(each.path.c_str(), each.flags | O_NOCTTY | O_CLOEXEC);
      if (opened < 0 || ::dup2(opened, STDIN_FILENO) < 0) ::_exit(90);
    };
    Outcome ran = Launch({"--", "/bin/echo", "ran"}, options);
    EXPECT_EQ(ran.status, each.reason.empty() ? 0 : 125) << each.path << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(each.reason)) << each.path;
    if (each.reason.empty()) continue;
    EXPECT_THAT(ran.err, HasSubstr("give it a file, a pipe or /dev/null")) << each.path;
    EXPECT_EQ(ran.out, "") << each.path;
  }
}

TEST_F(NativeLaunchTest, StatusesAreAsDocumented) {
  EXPECT_EQ(Launch({"--", "/bin/sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(Launch({"--", "/bin/sh", "-c", "kill -ABRT $$"}).status, 134);
  EXPECT_EQ(Launch({"--", "/nosuch"}).status, 127);
  EXPECT_EQ(Launch({"--", "nosuchname"}).status, 127);
  EXPECT_EQ(Launch({"--", ""}).status, 127);
  EXPECT_EQ(Launch({"--chdir=/tmp/", "--", "/bin/true"}).status, 0);
  EXPECT_EQ(Launch({"--", "/etc/passwd"}).status, 126);
  EXPECT_EQ(Launch({"--bogus"}).status, 125);
  EXPECT_EQ(Launch({"--timeout=300ms", "--", "/bin/sleep", "60"}).status, 124);
}

TEST_F(NativeLaunchTest, AProgramThatIgnoresEverythingIsEndedByTheTimeout) {
  auto start = std::chrono::steady_clock::now();
  Outcome ran = Launch({"--timeout=1s", ReportOption(), "--", "/bin/sh", "-c",
                        "trap '' TERM INT HUP QUIT; (trap '' TERM; sleep 600) & sleep 600"});
  EXPECT_EQ(ran.status, 124);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_THAT(Report(), HasSubstr(R"("timed_out":true)"));
}

TEST_F(NativeLaunchTest, AProgramMayEndByItselfWhenItsTimeIsUp) {
  const std::string script = "trap 'echo ended; exit 3' TERM; sleep 600 & wait";
  Outcome ran =
      Launch({"--timeout=3s", "--kill-after=20s", ReportOption(), "--", "/bin/sh", "-c", script});
  EXPECT_EQ(ran.status, 124);
  EXPECT_EQ(ran.out, "ended\n");
  EXPECT_THAT(Report(), HasSubstr(R"("exit":3,"signal":null,"timed_out":true)"));
  EXPECT_THAT(Report(), Not(HasSubstr(R"("cpu_us":null)")));
}

TEST_F(NativeLaunchTest, TheMemoryLimitKillsOneGreedyChild) {
  Outcome ran = Launch({"--memory=64M", ReportOption(), "--", "/bin/sh", "-c",
                        "/usr/bin/python3 -c 'bytearray(200<<20)'; echo after $?"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("after 137"));
  EXPECT_THAT(Report(), Not(HasSubstr(R"("oom_kills":0)")));
  // Control: the same fits a larger cell.
  Outcome control = Launch({"--memory=1G", "--", "/usr/bin/python3", "-c", "bytearray(200<<20)"});
  EXPECT_EQ(control.status, 0) << control.err;
}

TEST_F(NativeLaunchTest, ThePidsLimitRefusesForksAndIsCounted) {
  constexpr char kForks[] =
      "import os,sys,time\n"
      "n=0\n"
      "for i in range(60):\n"
      "  try:\n"
      "    if os.fork()==0: time.sleep(5); os._exit(0)\n"
      "    n+=1\n"
      "  except OSError as e: print(n, e.errno); sys.exit()\n"
      "print(n, 0)\n";
  Outcome limited = Launch({"--pids=20", ReportOption(), "--", "/usr/bin/python3", "-c", kForks});
  EXPECT_EQ(limited.status, 0) << limited.err;
  EXPECT_THAT(limited.out, testing::MatchesRegex("1[0-9] 11\n"));
  EXPECT_THAT(Report(), Not(HasSubstr(R"("pids_refusals":0)")));
  Outcome control = Launch({"--", "/usr/bin/python3", "-c", kForks});
  EXPECT_EQ(control.out, "60 0\n");
}

TEST_F(NativeLaunchTest, TmpfsSizesHold) {
  constexpr char kFill[] =
      "import errno\n"
      "try: open('/workspace/f','wb').write(b'x'*(3<<20)); print('fits')\n"
      "except OSError as e: print(errno.errorcode[e.errno])\n";
  EXPECT_EQ(Python(kFill, {"--tmpfs=/workspace:2M"}).out, "ENOSPC\n");
  EXPECT_EQ(Python(kFill, {"--tmpfs=/workspace:4M"}).out, "fits\n");
}

TEST_F(NativeLaunchTest, WhatIsInATmpfsCountsAsTheCellsMemory) {
  const std::vector<std::string> fill = {
      "--tmpfs=/workspace:200M", "--", "/bin/sh", "-c",
      "/usr/bin/python3 -c 'open(\"/workspace/f\",\"wb\").write(b\"x\"*(1<<20)*120)'; echo after "
      "$?"};
  auto run = [&](const std::string& memory) {
    std::vector<std::string> words = {memory};
    words.insert(words.end(), fill.begin(), fill.end());
    return Launch(words);
  };
  EXPECT_EQ(run("--memory=300M").out, "after 0\n") << "control: the file and what writes it";
  EXPECT_EQ(run("--memory=140M").out, "after 137\n");
}

TEST_F(NativeLaunchTest, ProgramsUnpackedInTmpAndWorkspaceRunAndInAPlainTmpfsDoNot) {
  Outcome ran =
      Launch({"--tmpfs=/plain:1M", "--", "/bin/sh", "-c",
              "for d in /tmp /workspace /plain; do cp /bin/true $d/t; $d/t; echo $?; done"});
  EXPECT_EQ(ran.out, "0\n0\n126\n") << ran.err;
}

TEST_F(NativeLaunchTest, NothingOfTheEnvironmentButTermComesIn) {
  RunOptions options;
  options.environment = {"SECRET_X=1", "LD_PRELOAD=/x", "TERM=dumb"};
  Outcome ran = Launch({"--env=A=b", "--", "/usr/bin/env"}, options);
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("PATH=/usr/local/bin:/usr/bin:/bin\n"), HasSubstr("TERM=dumb\n"),
                    HasSubstr("A=b\n"), HasSubstr("HOME=/tmp/home\n")));
  EXPECT_THAT(ran.out, Not(AllOf(HasSubstr("SECRET_X"), HasSubstr("LD_PRELOAD"))));
}

TEST_F(NativeLaunchTest, ClosedStandardStreamsBecomeDevNull) {
  RunOptions options;
  options.in_child = [] {
    for (int fd : {0, 1, 2}) ::close(fd);
  };
  EXPECT_EQ(Launch({"--", "/bin/sh", "-c", "[ /proc/self/fd/1 -ef /dev/null ] && exit 7"}, options)
                .status,
            7);
}

// Starts a cell that says it runs, hands its launcher's pid to `act`, and returns the exit status.
// The launcher ignores `ignored` from its start.
template <typename Act>
int WhileItRuns(const std::vector<std::string>& argv, const User& user, Act act,
                int ignored = SIGURG) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return -1;
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], 1);
    ::signal(ignored, SIG_IGN);
    EnterDelegatedCgroup(user.uid);
    if (::setresgid(user.gid, user.gid, user.gid) != 0 || ::setgroups(0, nullptr) != 0 ||
        ::setresuid(user.uid, user.uid, user.uid) != 0)
      ::_exit(99);
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    ::_exit(98);
  }
  ::close(pipe[1]);
  char byte = 0;
  ssize_t got = ::read(pipe[0], &byte, 1);
  if (got == 1) act(child);
  int status = 0;
  ::waitpid(child, &status, 0);
  // End of the pipe: no process of the cell holds it any more.
  while (::read(pipe[0], &byte, 1) > 0) {
  }
  ::close(pipe[0]);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_F(NativeLaunchTest, SignalsReachTheProgram) {
  auto term = [](pid_t launcher) { ::kill(launcher, SIGTERM); };
  EXPECT_EQ(WhileItRuns(Command({"--", "/bin/sh", "-c",
                                 "trap 'exit 42' TERM; echo ready; while :; do sleep 0.1; done"}),
                        *user_, term),
            42);
  EXPECT_EQ(
      WhileItRuns(Command({"--", "/bin/sh", "-c", "echo ready; exec sleep 100"}), *user_, term),
      143);
}

TEST_F(NativeLaunchTest, TheUsersOwnSignalsReachTheProgramToo) {
  for (int signal : {SIGUSR1, SIGUSR2}) {
    auto send = [signal](pid_t launcher) { ::kill(launcher, signal); };
    EXPECT_EQ(WhileItRuns(Command({"--", "/bin/sh", "-c",
                                   "trap 'exit 43' USR1 USR2; echo ready; "
                                   "while :; do sleep 0.1; done"}),
                          *user_, send),
              43);
  }
}

TEST_F(NativeLaunchTest, AProgramDeafToTheCallersSignalIsKilledAfterItsGrace) {
  const std::vector<std::string> command =
      Command({"--kill-after=300ms", ReportOption(), "--", "/bin/sh", "-c",
               "trap '' TERM HUP INT; echo ready; sleep 30; exit 5"});
  for (int signal : {SIGTERM, SIGHUP}) {
    auto send = [signal](pid_t launcher) { ::kill(launcher, signal); };
    EXPECT_EQ(WhileItRuns(command, *user_, send), 137) << signal;
    EXPECT_THAT(Report(), AllOf(HasSubstr(R"("status":137)"), HasSubstr(R"("timed_out":false)")));
  }
}

TEST_F(NativeLaunchTest, OnlyWhereAskedTheCellEndsWithWhoStartedIt) {
  auto kill = [](pid_t parent) { ::kill(parent, SIGKILL); };
  const std::string program = Program("taskcell-launch");
  auto seconds = [&](const std::string& option, int sleep) {
    auto start = std::chrono::steady_clock::now();
    std::string job = Text(" -- /bin/sh -c 'echo ready; sleep ", sleep, "' & wait");
    EXPECT_EQ(WhileItRuns({"/bin/sh", "-c", program + option + job}, *user_, kill), 137);
    return (std::chrono::steady_clock::now() - start) / std::chrono::seconds(1);
  };
  const std::vector<std::string> before = CellCgroups();
  EXPECT_GE(seconds("", 3), 3) << "control";
  EXPECT_LT(seconds(" --die-with-parent", 100), 100);
  // The killed launcher's cgroup goes with the next launch.
  for (int run = 0; run < 50 && CellCgroups() != before; ++run)
    EXPECT_EQ(Launch({"--", "/bin/true"}).status, 0);
  EXPECT_EQ(CellCgroups(), before);
}

TEST_F(NativeLaunchTest, ASignalThatIsIgnoredAtTheStartStaysIgnoredByLauncherAndProgram) {
  auto hang_up = [](pid_t launcher) { ::kill(launcher, SIGHUP); };
  std::vector<std::string> command =
      Command({"--", "/bin/sh", "-c", "echo ready; sleep 1; exit 5"});
  EXPECT_EQ(WhileItRuns(command, *user_, hang_up), 129);
  EXPECT_EQ(WhileItRuns(command, *user_, hang_up, SIGHUP), 5);
  // The terminal's own signals go to the program directly.
  constexpr char kIgnoresHangup[] =
      "import signal, sys\n"
      "print('ready', flush=True)\n"
      "sys.exit(3 if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else 4)\n";
  command = Command({"--", "/usr/bin/python3", "-c", kIgnoresHangup});
  auto nothing = [](pid_t) {};
  EXPECT_EQ(WhileItRuns(command, *user_, nothing), 4);
  EXPECT_EQ(WhileItRuns(command, *user_, nothing, SIGHUP), 3);
  // The others are passed on as ever.
  auto both = [](pid_t launcher) {
    ::kill(launcher, SIGHUP);
    ::kill(launcher, SIGTERM);
  };
  command = Command({"--", "/bin/sh", "-c", "echo ready; exec sleep 100"});
  EXPECT_EQ(WhileItRuns(command, *user_, both, SIGHUP), 143);
}

TEST_F(NativeLaunchTest, AKilledLauncherLeavesNoProcessAndItsCgroupGoesWithTheNextRun) {
  auto kill = [](pid_t launcher) { ::kill(launcher, SIGKILL); };
  const std::vector<std::string> before = CellCgroups();
  EXPECT_EQ(WhileItRuns(Command({"--", "/bin/sh", "-c", "echo ready; sleep 317 & sleep 317"}),
                        *user_, kill),
            137);
  // The dead may still be on their way out of their cgroup.
  constexpr int kTries = 50;
  for (int run = 0; run < kTries && CellCgroups() != before; ++run)
    EXPECT_EQ(Launch({"--", "/bin/true"}).status, 0);
  EXPECT_EQ(CellCgroups(), before);
}

TEST_F(NativeLaunchTest, BackgroundProcessesEndWithTheProgramAndOrphansAreReaped) {
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Launch({"--", "/bin/sh", "-c", "(sleep 317 &); exit 5"}).status, 5);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  Outcome ran = Launch({"--", "/bin/sh", "-c",
                        "for i in 1 2 3 4 5; do sh -c 'sleep 0.1 & exit 0'; done; sleep 1; "
                        "cat /proc/[0-9]*/stat | awk '$3==\"Z\"' | wc -l"});
  EXPECT_EQ(ran.out, "0\n") << ran.err;
}

TEST_F(NativeLaunchTest, AReportIsWrittenForAFailureToo) {
  Outcome ran = Launch({ReportOption(), "--ro=/nonexistent", "--", "/bin/true"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(Report(), AllOf(HasSubstr(R"("status":125)"), HasSubstr("/nonexistent")));
}

TEST_F(NativeLaunchTest, ACommandLineThatCannotBeReadLeavesNoOlderReport) {
  MakeFile("report.json", "an older report");
  ASSERT_EQ(::chown((scratch_ + "/report.json").c_str(), user_->uid, user_->gid), 0);
  EXPECT_EQ(Launch({ReportOption(), "--memory=x", "--", "/bin/true"}).status, 125);
  EXPECT_THAT(Report(), AllOf(HasSubstr(R"("status":125)"), HasSubstr("--memory")));
}

TEST_F(NativeLaunchTest, AReportThatCannotBeAFileIsRefusedBeforeAnythingRuns) {
  std::string fifo = scratch_ + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(fifo.c_str(), 0666), 0);
  Outcome ran = Launch({"--report", fifo, "--", "/bin/echo", "ran"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_FALSE(ran.timed_out);
  EXPECT_THAT(ran.err, AllOf(HasSubstr(fifo), HasSubstr("is a FIFO")));
  EXPECT_EQ(ran.out, "");
}

TEST_F(NativeLaunchTest, AReportThatCannotBeWrittenIsToldWithTheProgramsStatus) {
  RunOptions options;
  options.in_child = [] {
    struct rlimit limit = {8, 8};  // bytes of any file: the report is longer
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  std::string rootfs = MakeRootfs();
  Outcome ran = Launch({ReportOption(), "--rootfs", rootfs, "--", "/launch", "--bogus"}, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("report.json"), HasSubstr("File too large"),
                             HasSubstr("the status without it is 125")));
}

// Nothing of the cell is made then: the message is all there is.
TEST_F(NativeLaunchTest, ALowerLimitOfTheCallerIsNamedWithItsValueAndTheWayOut) {
  struct Row {
    int resource;
    rlim_t hard;
    std::vector<std::string> options;
    std::vector<std::string> texts;
  };
  const Row rows[] = {
      {RLIMIT_NOFILE, 512, {}, {"RLIMIT_NOFILE", "512", "1024", "--nofile", "LimitNOFILE="}},
      {RLIMIT_NOFILE, 100, {"--nofile=50"}, {"RLIMIT_NOFILE", "100", "128", "LimitNOFILE="}},
      {RLIMIT_NPROC, 1, {}, {"RLIMIT_NPROC"}},
  };
  for (const Row& row : rows) {
    RunOptions options;
    options.in_child = [&row] {
      struct rlimit limit = {row.hard, row.hard};
      ::setrlimit(static_cast<__rlimit_resource>(row.resource), &limit);
    };
    std::vector<std::string> arguments = row.options;
    for (const char* word : {"--", "/bin/true"}) arguments.emplace_back(word);
    Outcome ran = Launch(arguments, options);
    EXPECT_EQ(ran.status, 125);
    for (const std::string& text : row.texts) EXPECT_THAT(ran.err, HasSubstr(text));
  }
}

bool SetCoreLimit(rlim_t value) {
  const struct rlimit limit = {value, value};
  return ::setrlimit(RLIMIT_CORE, &limit) == 0;
}

// In the lab root may raise it and a handler is there, too.
TEST_F(NativeLaunchTest, AHardCoreLimitOfZeroIsRaisedByWhoMayAndElseRefusedWhereAHandlerIsAsked) {
  const bool root_may = InChild([] { return SetCoreLimit(0) && SetCoreLimit(1) ? 0 : 1; }) == 0;
  std::string pattern;
  std::getline(std::ifstream("/proc/sys/kernel/core_pattern"), pattern);
  RunOptions options;
  options.in_child = [] {
    if (!SetCoreLimit(0)) ::_exit(90);
  };
  const std::vector<std::string> show = {"--", "/bin/grep", "core", "/proc/self/limits"};
  for (const bool is_root : {true, false}) {
    const Outcome ran = is_root ? LaunchAsRoot(show, options) : Launch(show, options);
    if (is_root && root_may) {
      EXPECT_EQ(ran.status, 0) << ran.err;
      EXPECT_THAT(ran.out, testing::ContainsRegex("Max core file size +1 +1 +bytes"));
    } else if (pattern.starts_with('|')) {
      EXPECT_EQ(ran.status, 125);
      EXPECT_THAT(ran.err, HasSubstr("ulimit -Hc"));
    } else {
      EXPECT_EQ(ran.status, 0) << ran.err;
      EXPECT_THAT(ran.out, testing::ContainsRegex("Max core file size +0 +0 +bytes"));
    }
  }
}

TEST_F(NativeLaunchTest, TheCallersSoftLimitOnDescriptorsIsNoneOfTheCell) {
  RunOptions options;
  options.in_child = [] {
    struct rlimit limit = {16, 4096};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  };
  Outcome ran = Launch({"--nofile=512", "--", "/bin/sh", "-c", "ulimit -n; ulimit -Hn"}, options);
  EXPECT_EQ(ran.out, "512\n512\n") << ran.err;
}

TEST_F(NativeLaunchTest, AMemoryLimitTooSmallForTheCellItselfIsToldAsThat) {
  for (const char* memory : {"--memory=4K", "--memory=100K"}) {
    Outcome ran = Launch({memory, "--", "/bin/true"});
    EXPECT_EQ(ran.status, 125) << memory;
    EXPECT_THAT(ran.err, HasSubstr("too small for the cell itself")) << memory;
  }
  // What the message says is enough.
  EXPECT_EQ(Launch({"--memory=2M", "--", "/bin/true"}).status, 0);
}

TEST_F(NativeLaunchTest, ATargetThatWouldCoverWhatTheHostRootShowsIsRefused) {
  struct Row {
    const char* target;
    const char* text;
  };
  const Row rows[] = {
      {"/usr", "host root's own mount at '/usr'"},
      {"/etc", "host root's own mount at '/etc/"},
      {"/usr/taskcell-nothing", "read-only"},
      {"/var/tmp", "symbolic link"},
  };
  for (const Row& row : rows) {
    Outcome ran = Launch({std::string("--tmpfs=") + row.target + ":1M", "--", "/bin/true"});
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.err,
                AllOf(HasSubstr(row.target), HasSubstr(row.text), Not(HasSubstr("ROOTFS"))));
  }
  // Below one, and beside them, there is room.
  Outcome beside = Launch({"--tmpfs=/usr/local:1M", "--tmpfs=/etc/new:1M", "--tmpfs=/var:1M", "--",
                           "/bin/sh", "-c", "echo x >/etc/new/x && echo x >/usr/local/x"});
  EXPECT_EQ(beside.status, 0) << beside.err;
}

TEST_F(NativeLaunchTest, WhereNothingIsDelegatedTheLaunchIsRefusedByCode) {
  // nobody has no cgroup directories.
  Outcome ran = test::Run({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           Program("taskcell-launch"), "--", "/bin/true"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("resource_limits_unenforced"));
}

TEST_F(NativeLaunchTest, UserNamespacesSwitchedOffAreNamedBeforeLimits) {
  RunOptions options;
  options.user = user_;
  Outcome ran = test::Run({"/usr/bin/unshare", "-Ur", "/bin/sh", "-c",
                           "echo 0 >/proc/sys/user/max_user_namespaces; exec \"$0\" -- /bin/true",
                           Program("taskcell-launch")},
                          options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("max_user_namespaces is 0"), Not(HasSubstr("No space"))));
}

// The kernel's word for both is that of a full disk.
TEST_F(NativeLaunchTest, UserNamespacesThatAreUsedUpAreNamedBeforeLimits) {
  RunOptions options;
  options.user = user_;
  auto launched_where = [&](const std::string& before) {
    const std::string script =
        "echo 1 >/proc/sys/user/max_user_namespaces; own=$(readlink "
        "/proc/self/ns/user); " +
        before + "\"$0\" -- /bin/true; status=$?; kill $!; exit $status";
    return test::Run(
        {"/usr/bin/unshare", "-Ur", "/bin/sh", "-c", script, Program("taskcell-launch")}, options);
  };
  Outcome one_is_left = launched_where("sleep 1000 & ");
  EXPECT_EQ(one_is_left.status, 125);
  EXPECT_THAT(one_is_left.err, Not(HasSubstr("max_user_namespaces"))) << "control";
  Outcome none_is_left = launched_where(
      "unshare -U sleep 1000 & while [ \"$(readlink /proc/$!/ns/user)\" = \"$own\" ]; do :; "
      "done; ");
  EXPECT_EQ(none_is_left.status, 125);
  EXPECT_THAT(none_is_left.err, AllOf(HasSubstr("(user.max_user_namespaces is 1) is used up"),
                                      Not(HasSubstr("No space"))));
}

TEST_F(NativeLaunchTest, UserNamespacesThatAreNestedTooDeepAreNamedBeforeLimits) {
  const std::string script = MakeFile("deeper",
                                      "unshare -U true 2>/dev/null || exec \"$1\" -- /bin/true\n"
                                      "exec unshare -Ur /bin/sh \"$0\" \"$1\"\n");
  RunOptions options;
  options.user = user_;
  Outcome ran = test::Run({"/bin/sh", script, Program("taskcell-launch")}, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("user namespaces are nested 32 deep"), Not(HasSubstr("No space"))));
}

TEST_F(NativeLaunchTest, TheJobHasATimeNamespaceOfItsOwnWhoseClocksAreTheHosts) {
  TASKCELL_REQUIRE(::access("/proc/self/ns/time", F_OK) == 0,
                   "needs a kernel with time namespaces");
  std::string outside = std::filesystem::read_symlink("/proc/self/ns/time");
  Outcome ran =
      Launch({"--", "/bin/sh", "-c", "readlink /proc/self/ns/time; cut -d. -f1 /proc/uptime"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::size_t end = ran.out.find('\n');
  EXPECT_THAT(ran.out, testing::StartsWith("time:["));
  EXPECT_NE(ran.out.substr(0, end), outside);
  double uptime = 0;
  std::ifstream("/proc/uptime") >> uptime;
  EXPECT_NEAR(std::stod(ran.out.substr(end + 1)), uptime, 60);
}

TEST_F(NativeLaunchTest, TheSessionKeyringOfTheCallerIsLeft) {
  RunOptions options;
  options.in_child = [] {
    constexpr long kJoinSessionKeyring = 1;
    if (::syscall(SYS_keyctl, kJoinSessionKeyring, nullptr) < 0) ::_exit(90);
  };
  std::string report = "--report=" + scratch_ + "/report.json";
  Outcome ran = Launch({report, "--", "/bin/true"}, options);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(Report(), HasSubstr(R"("keyring":"own")"));
  // Nobody may make one more: the cell is made, its filter is what holds, and the report says so.
  RunOptions full;
  full.in_child = [] {
    if (!InstallFaults({{SYS_keyctl, EDQUOT}})) ::_exit(90);
  };
  EXPECT_EQ(Launch({report, "--", "/bin/true"}, full).status, 0);
  EXPECT_THAT(Report(), HasSubstr(R"("keyring":"inherited")"));
}

// The kernel is made to say that it has no keys where one is to be left, and that alone.
TEST_F(NativeLaunchTest, ACellThatKeptItsCallersKeyringUnawaresIsRefused) {
  constexpr uint32_t kJoinSessionKeyring = 1;
  RunOptions options;
  options.in_child = [] {
    if (::syscall(SYS_keyctl, kJoinSessionKeyring, nullptr) < 0) ::_exit(90);
    if (!InstallFaults({{SYS_keyctl, ENOSYS, 0, kJoinSessionKeyring}})) ::_exit(91);
  };
  Outcome ran = Launch({"--", "/bin/echo", "ran"}, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("keyring: planned the cell's own, found the host's"));
}

}  // namespace
}  // namespace taskcell::test
