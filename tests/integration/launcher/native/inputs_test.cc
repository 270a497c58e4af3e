// What a program in a cell is given of the host: directories, data from descriptors, instructions.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "tests/support/host_guard.h"
#include "tests/support/kill_at_call.h"
#include "tests/support/launch.h"
#include "tests/support/syscall_faults.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class InputsTest : public LaunchTest {};

TEST_F(InputsTest, ABindIsReadOnlyUnlessAskedOtherwise) {
  std::string file = MakeFile("data/file", "before");
  std::filesystem::permissions(scratch_ + "/data", std::filesystem::perms::all);
  std::string bind = scratch_ + "/data:/data";
  Outcome refused = Launch({"--ro", bind, "--", "/bin/sh", "-c", "echo after >/data/new"});
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("Read-only file system"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ + "/data/new"));
  Outcome written = Launch({"--bind-rw", bind, "--", "/bin/sh", "-c", "echo after >/data/new"});
  EXPECT_EQ(written.status, 0) << written.err;
  EXPECT_TRUE(std::filesystem::exists(scratch_ + "/data/new"));
}

// What is made to mount on would stay on the host.
TEST_F(InputsTest, NothingIsMadeInWhatTheCallerLetsBeWritten) {
  MakeFile("data/there/file", "x");
  ASSERT_EQ(::chown((scratch_ + "/data").c_str(), user_->uid, user_->gid), 0);
  const std::string bind = "--bind-rw=" + scratch_ + "/data:/data";
  const std::string report = "--report=" + scratch_ + "/report.json";
  ASSERT_EQ(Launch({bind, report, "--tmpfs=/data/there:1M", "--tmpfs=/data/there/in:1M", "--",
                    "/bin/true"})
                .status,
            0);
  std::ifstream file(scratch_ + "/report.json");
  std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(written, HasSubstr(R"("writable_mounts":["/data"])"));
  for (const std::string& missing :
       {std::string("--tmpfs=/data/new:1M"), "--ro=" + scratch_ + "/data/there:/data/a/b",
        "--ro=" + scratch_ + "/data/there/file:/data/new"}) {
    SCOPED_TRACE(missing);
    Outcome refused = Launch({bind, missing, "--", "/bin/true"});
    EXPECT_EQ(refused.status, 125);
    EXPECT_THAT(refused.err, HasSubstr("in what --bind-rw shows at '/data'"));
    EXPECT_THAT(refused.err, HasSubstr("mkdir -p " + scratch_ + "/data/"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch_ + "/data"), {}), 1);
  }
}

// It is the caller who may read it, and the cell is somebody else to the host.
TEST_F(InputsTest, ASourceThatTheCellMayNotReadIsRefusedAndWhatIsBelowIsNot) {
  MakeFile("data/open", "content");
  const std::string closed = MakeFile("data/closed", "content");
  const std::string data = scratch_ + "/data";
  const std::string report = scratch_ + "/report.json";
  auto launch = [&](const std::string& source, const char* ids) {
    return Launch({"--ro=" + source + ":/data", "--report=" + report, "--userns", ids, "--",
                   "/bin/sh", "-c", "cat /data/open; cat /data/closed"});
  };
  ASSERT_EQ(::chmod(closed.c_str(), 0600), 0);
  ASSERT_EQ(::chown(closed.c_str(), user_->uid, user_->gid), 0);
  ASSERT_EQ(::chown(data.c_str(), user_->uid, user_->gid), 0);
  const Outcome control = launch(data, "subids");
  EXPECT_EQ(control.out, "content") << control.err;
  EXPECT_THAT(control.err, HasSubstr("/data/closed: Permission denied"));
  EXPECT_EQ(launch(data, "own").out, "contentcontent");
  for (const auto& [source, mode] :
       {std::pair(data, mode_t{0711}), std::pair(data, mode_t{0744}), std::pair(data, mode_t{0700}),
        std::pair(closed, mode_t{0600})}) {
    ASSERT_EQ(::chmod(source.c_str(), mode), 0);
    const Outcome refused = launch(source, "subids");
    EXPECT_EQ(refused.status, 125) << source;
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, HasSubstr("stage 'access'"));
    EXPECT_THAT(refused.err, HasSubstr("'" + source + "' is not readable for the cell"));
    EXPECT_THAT(refused.err, HasSubstr("setfacl -m u:"));
    std::ifstream file(report);
    std::string told{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(told, HasSubstr(R"("code":"source_unreadable")"));
    ASSERT_EQ(::chmod(source.c_str(), source == data ? 0755 : 0600), 0);
  }
}

// What /proc calls a directory that is gone is a name that somebody else may take.
TEST_F(InputsTest, ASourceThatIsGoneIsNotTheOneThatHasItsNameNow) {
  MakeFile("data/file", "good");
  MakeFile("data (deleted)/file", "the canary");
  ASSERT_EQ(::chown((scratch_ + "/data").c_str(), user_->uid, user_->gid), 0);
  RunOptions options;
  options.user = user_;
  options.directory = scratch_ + "/data";
  const std::vector<std::string> words = Command({"--ro=.:/data", "--", "/bin/cat", "/data/file"});
  std::vector<std::string> script = {"/bin/sh", "-c", "exec \"$@\"", "sh"};
  script.insert(script.end(), words.begin(), words.end());
  EXPECT_EQ(test::Run(script, options).out, "good") << "control";
  script[2] = "rm file && rmdir ../data && exec \"$@\"";
  const Outcome gone = test::Run(script, options);
  EXPECT_EQ(gone.status, 125) << gone.out;
  EXPECT_THAT(gone.out + gone.err, Not(HasSubstr("the canary")));
}

TEST_F(InputsTest, AMountShowsWhatIsWrittenLaterAndACopyDoesNot) {
  MakeFile("agent/SOUL.md", "before");
  MakeFile("agent/go", "");
  for (const char* name : {"/agent", "/agent/SOUL.md"})
    ASSERT_EQ(::chown((scratch_ + name).c_str(), user_->uid, user_->gid), 0);
  const std::string write =
      "printf after >" + scratch_ + "/agent/SOUL.md; rm " + scratch_ + "/agent/go";
  // The program in the cell waits for what is written outside as soon as the cell is there.
  RunOptions options;
  options.user = user_;
  const Outcome ran = test::Run(
      {"/bin/sh", "-c",
       "\"$1\" --agent-dir=$2 --ro=$2:/data -- /bin/sh -c 'echo there; while [ -e /data/go ]; do "
       "sleep 0.01; done; cat /agent/SOUL.md /data/SOUL.md' | { read there; " +
           write + "; echo $there; cat; }",
       "sh", Program("taskcell-launch"), scratch_ + "/agent"},
      options);
  EXPECT_EQ(ran.out, "there\nbeforeafter") << ran.err;
}

TEST_F(InputsTest, ARootDirectoryThatTheCellMayNotEnterIsRefused) {
  const std::string rootfs = MakeRootfs();
  ASSERT_EQ(::chown(rootfs.c_str(), user_->uid, user_->gid), 0);
  const std::vector<std::string> arguments = {
      "--rootfs=" + rootfs, "--userns", "subids", "--", "/launch", "--version"};
  EXPECT_EQ(Launch(arguments).status, 0);  // control
  ASSERT_EQ(::chmod(rootfs.c_str(), 0700), 0);
  const Outcome refused = Launch(arguments);
  EXPECT_EQ(refused.status, 125) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("'" + rootfs + "' is not readable for the cell"));
}

TEST_F(InputsTest, InAMountWithoutSymbolicLinksNoneIsFollowed) {
  MakeFile("data/file", "content");
  std::filesystem::create_symlink("file", scratch_ + "/data/link");
  const std::string bind = "--ro=" + scratch_ + "/data:/data";
  EXPECT_EQ(Launch({bind, "--", "/bin/cat", "/data/link"}).out, "content");  // control
  Outcome ran = Launch({bind + ":nosymfollow", "--", "/bin/cat", "/data/file", "/data/link"});
  EXPECT_EQ(ran.out, "content");
  EXPECT_THAT(ran.err, HasSubstr("/data/link: Too many levels of symbolic links"));
}

TEST_F(InputsTest, AProcOfProcessesAloneShowsNothingOfTheHost) {
  const std::vector<std::string> listing = {"--", "/bin/sh", "-c",
                                            "ls /proc | grep -v '^[0-9]' | tr '\n' ' '"};
  EXPECT_THAT(Launch(listing).out, HasSubstr("meminfo"));  // control
  std::vector<std::string> subset = listing;
  subset.insert(subset.begin(), {"--proc=pids", "--report=" + scratch_ + "/report.json"});
  Outcome ran = Launch(subset);
  EXPECT_EQ(ran.out, "self thread-self ") << ran.err;
  std::ifstream file(scratch_ + "/report.json");
  std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(written, HasSubstr(R"("proc":"subset")"));
}

// The cgroup hierarchies lie below a tmpfs with v1: nothing at the top tells.
TEST_F(InputsTest, NoSourceShowsACellItsOwnLimits) {
  for (const char* option : {"--ro", "--bind-rw"}) {
    Outcome refused = Launch({option, "/sys/fs/cgroup:/x", "--", "/bin/true"});
    EXPECT_EQ(refused.status, 125) << option;
    EXPECT_THAT(refused.err, HasSubstr("is on a file system of the kernel's own (cgroup"));
  }
}

TEST_F(InputsTest, AFileHoldsWhatItsDescriptorHeld) {
  std::string source = MakeFile("source", "from a descriptor");
  RunOptions options;
  options.in_child = [&source] {
    UniqueFd fd = sys::Open(source, O_RDONLY).value();
    if (!sys::PlaceDescriptor(fd.get(), 99).ok()) ::_exit(90);
  };
  Outcome ran = Launch({"--file=/etc/given:99", "--", "/bin/sh", "-c",
                        "cat /etc/given; ls /proc/self/fd | wc -l; echo x >/etc/given"},
                       options);
  EXPECT_EQ(ran.out, "from a descriptor4\n");
  EXPECT_THAT(ran.err, HasSubstr("Read-only file system"));
  for (const auto& entry : std::filesystem::directory_iterator("/tmp"))
    EXPECT_THAT(entry.path().filename().string(), Not(testing::StartsWith("taskcell-file-")));
}

// A descriptor that stays open for writing, at number 99.
std::function<void()> WithOpenPipe() {
  return [] {
    sys::Pipe pipe = sys::MakePipe().value();
    if (!sys::PlaceDescriptor(pipe.read_end.get(), 99).ok()) ::_exit(90);
    if (!sys::PlaceDescriptor(pipe.write_end.get(), 98).ok()) ::_exit(90);
  };
}

TEST_F(InputsTest, ADescriptorThatNeverEndsIsGivenUpWhenTheTimeIsUp) {
  RunOptions options;
  options.in_child = WithOpenPipe();
  Outcome ran = Launch({"--timeout=300ms", "--file=/etc/given:99", "--", "/bin/true"}, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("descriptor 99 was not at its end within 300 ms"));
}

TEST_F(InputsTest, ASignalEndsALaunchThatWaitsForADescriptor) {
  RunOptions options;
  options.in_child = [pipe = WithOpenPipe()] {
    pipe();
    pid_t self = ::getpid();
    if (::fork() == 0) {
      (void)::usleep(500'000);
      ::_exit(::kill(self, SIGTERM));
    }
  };
  Outcome terminated = Launch({"--file=/etc/given:99", "--", "/bin/true"}, options);
  EXPECT_EQ(terminated.status, 128 + SIGTERM) << terminated.err;
}

// Killed as it enters one of its system calls, and then at a later one, until it comes to no more.
TEST_F(InputsTest, ALauncherThatIsKilledLeavesNoFileWithAGivenContent) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to trace");
  const std::vector<std::string> before = CellCgroups();
  std::string source = MakeFile("source", "from a descriptor");
  std::string runtime = scratch_ + "/runtime";
  std::filesystem::create_directory(runtime);
  ASSERT_EQ(::chown(runtime.c_str(), user_->uid, user_->gid), 0);
  std::vector<long> all;
  constexpr long kPastTheLast = 600;
  for (long number = 0; number < kPastTheLast; ++number) all.push_back(number);
  const std::string program = Program("taskcell-launch");
  auto become = [&] {
    EnterDelegatedCgroup(user_->uid);
    UniqueFd fd = sys::Open(source, O_RDONLY).value();
    UniqueFd null = sys::Open("/dev/null", O_WRONLY).value();
    bool ready = sys::PlaceDescriptor(fd.get(), 99).ok() &&
                 sys::PlaceDescriptor(null.get(), STDERR_FILENO).ok() &&
                 ::setgroups(0, nullptr) == 0 && ::setgid(user_->gid) == 0 &&
                 ::setuid(user_->uid) == 0;
    if (!ready) ::_exit(90);
    (void)sys::Execute(program, {program, "--file=/etc/given:99", "--", "/bin/true"},
                       {"XDG_RUNTIME_DIR=" + runtime});
  };
  // Not at each: most repeat the one before, and each run takes its time.
  constexpr int kStep = 7;
  int status = 128 + SIGKILL;
  int killed = -1;
  for (int nth = 1; status == 128 + SIGKILL; nth += kStep, ++killed) {
    status = KillAtCall(become, all, nth);
    ASSERT_TRUE(std::filesystem::is_empty(runtime)) << "killed at call " << nth;
  }
  EXPECT_EQ(status, 0) << "control: a launcher that is not killed comes to its end";
  EXPECT_GT(killed, 20);
  // The next run takes the cgroups of those that were killed.
  EXPECT_TRUE(WaitFor([&] {
    return Launch({"--", "/bin/true"}).status == 0 && CellCgroups() == before;
  }));
}

TEST_F(InputsTest, WhereNoTmpfsCanBeMadeForAFileItHasANameUntilTheCellHasIt) {
  std::string source = MakeFile("source", "from a descriptor");
  std::string runtime = scratch_ + "/runtime";
  std::filesystem::create_directory(runtime);
  ASSERT_EQ(::chown(runtime.c_str(), user_->uid, user_->gid), 0);
  RunOptions options;
  options.environment = {"XDG_RUNTIME_DIR=" + runtime};
  options.in_child = [&source] {
    UniqueFd fd = sys::Open(source, O_RDONLY).value();
    if (!sys::PlaceDescriptor(fd.get(), 99).ok()) ::_exit(90);
    if (!InstallFaults({{SYS_fsopen, ENOSYS}})) ::_exit(91);
  };
  Outcome ran = Launch({"--file=/etc/given:99", "--", "/bin/cat", "/etc/given"}, options);
  EXPECT_EQ(ran.out, "from a descriptor") << ran.err;
  EXPECT_TRUE(std::filesystem::is_empty(runtime));
}

TEST_F(InputsTest, ADescriptorThatIsNotOpenIsRefused) {
  Outcome ran = Launch({"--report=" + scratch_ + "/r", "--file=/etc/given:5", "--", "/bin/true"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("descriptor 5 is not open"));
  std::ifstream file(scratch_ + "/r");
  const std::string report(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(report, HasSubstr("descriptor 5 is not open")) << "no older report stays";
}

TEST_F(InputsTest, OnlyTheAgentsInstructionsAreSeenAndAsTheyWereAtTheStart) {
  MakeFile("agent/SOUL.md", "v1");
  MakeFile("agent/.mcp.json", "key");
  MakeFile("agent/SKILLS/a/SKILL.md", "skill");
  std::filesystem::create_symlink("/etc/passwd", scratch_ + "/agent/CLAUDE.md");
  Outcome ran = Launch({"--agent-dir", scratch_ + "/agent", "--", "/bin/sh", "-c",
                        "cat /agent/SOUL.md; ls -A /agent; cat /agent/SKILLS/a/SKILL.md"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "v1SKILLS\nSOUL.md\nskill");
  EXPECT_THAT(ran.err, HasSubstr("CLAUDE.md"));
}

TEST_F(InputsTest, TheCopyOfAnAgentDirectoryIsATmpfsOfTheCellsOwnAndOnNoDisk) {
  MakeFile("agent/SOUL.md", "soul");
  // Where a copy on the host would have to go.
  std::filesystem::create_directory(scratch_ + "/runtime");
  ASSERT_EQ(::chown((scratch_ + "/runtime").c_str(), user_->uid, user_->gid), 0);
  ASSERT_EQ(::chmod((scratch_ + "/runtime").c_str(), 0500), 0);
  RunOptions options;
  options.environment = {"XDG_RUNTIME_DIR=" + scratch_ + "/runtime"};
  for (const char* ids : {"--userns=own", "--userns=subids"}) {
    Outcome ran = Launch({ids, "--agent-dir", scratch_ + "/agent", "--", "/bin/sh", "-c",
                          "cat /agent/SOUL.md; grep ' /agent ' /proc/self/mountinfo"},
                         options);
    EXPECT_EQ(ran.status, 0) << ids << ran.err;
    EXPECT_THAT(ran.out, testing::StartsWith("soul")) << ids;
    EXPECT_THAT(ran.out, HasSubstr(" / /agent ro,nosuid,nodev")) << ids;
    EXPECT_THAT(ran.out, HasSubstr(" - tmpfs ")) << ids;
  }
}

TEST_F(InputsTest, WithoutOneOfTheNewerMountCallsTheCopyIsInADirectoryThatIsGoneAfterwards) {
  MakeFile("agent/SOUL.md", "soul");
  std::filesystem::create_directory(scratch_ + "/runtime");
  ASSERT_EQ(::chown((scratch_ + "/runtime").c_str(), user_->uid, user_->gid), 0);
  for (long number : {SYS_fsopen, SYS_open_tree, SYS_move_mount, SYS_mount_setattr}) {
    for (int err : {ENOSYS, EPERM}) {
      RunOptions options;
      options.environment = {"XDG_RUNTIME_DIR=" + scratch_ + "/runtime"};
      options.in_child = [number, err] {
        if (!InstallFaults({{static_cast<int>(number), err}})) ::_exit(90);
      };
      const std::vector<std::string> command = {
          "--agent-dir", scratch_ + "/agent",
          "--",          "/bin/sh",
          "-c",          "cat /agent/SOUL.md; touch /agent/x 2>/dev/null || echo ' refused'"};
      Outcome ran = Launch(command, options);
      EXPECT_EQ(ran.status, 0) << number << ran.err;
      EXPECT_EQ(ran.out, "soul refused\n") << number;
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ + "/runtime"));
}

TEST_F(InputsTest, WhereNoTmpfsCanBeMadeForTheCopyNothingRuns) {
  MakeFile("agent/SOUL.md", "soul");
  RunOptions options;
  options.in_child = [] { (void)InstallFaults({{SYS_fsopen, EACCES}}); };
  Outcome ran = Launch({"--agent-dir", scratch_ + "/agent", "--", "/bin/echo", "ran"}, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("--agent-dir"));
  EXPECT_THAT(ran.err, HasSubstr("tmpfs"));
}

}  // namespace
}  // namespace taskcell::test
