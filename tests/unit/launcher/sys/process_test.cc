#include "launcher/sys/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"

namespace taskcell::sys {
namespace {

constexpr int kTestTimeoutMs = 10'000;

// Runs `body` in a child and returns how it ended.
template <typename Body>
ExitInfo InChild(Body body) {
  Cloned cloned = CloneProcess(0).value();
  if (cloned.in_child) ExitNow(body());
  return cloned.child.Wait().value();
}

TEST(CloneProcessTest, TheExitStatusComesBack) {
  ExitInfo ended = InChild([] { return 42; });
  EXPECT_EQ(ended.status, 42);
  EXPECT_EQ(ended.signal, 0);
}

TEST(CloneProcessTest, TheSignalThatEndedItComesBack) {
  ExitInfo ended = InChild([] { return ::raise(SIGKILL); });
  EXPECT_EQ(ended.signal, SIGKILL);
}

TEST(CloneProcessTest, ADroppedChildIsKilledAndReaped) {
  pid_t pid = 0;
  {
    Cloned cloned = CloneProcess(0).value();
    if (cloned.in_child) {
      while (true) ::pause();
    }
    pid = cloned.child.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(CloneProcessTest, ACgroupThatIsNoCgroupIsRefused) {
  UniqueFd root(::open("/", O_PATH | O_CLOEXEC));
  Result<Cloned> cloned = CloneProcess(0, root.get());
  ASSERT_FALSE(cloned.ok());
  EXPECT_NE(cloned.error().text.find("cgroup"), std::string::npos);
}

TEST(AssertSingleThreadTest, ASecondThreadIsRefused) {
  ASSERT_TRUE(AssertSingleThread().ok());
  Pipe pipe = MakePipe().value();
  std::thread second([&] {
    char byte = 0;
    (void)Read(pipe.read_end.get(), {&byte, 1});  // ignoring: end of file is the signal to end
  });
  Status status = AssertSingleThread();
  pipe.write_end.Reset();
  second.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, Kind::kInternal);
}

TEST(CloseRangeTest, ClosesTheRangeAndNothingElse) {
  ExitInfo ended = InChild([] {
    int low = ::fcntl(0, F_DUPFD_CLOEXEC, 200);
    int high = ::fcntl(0, F_DUPFD_CLOEXEC, 210);
    if (!CloseRange(static_cast<unsigned>(low), static_cast<unsigned>(high) - 1).ok()) return 1;
    if (::fcntl(low, F_GETFD) >= 0) return 2;
    return ::fcntl(high, F_GETFD) < 0 ? 3 : 0;
  });
  EXPECT_EQ(ended.status, 0);
}

TEST(ExecuteDescriptorTest, RunsTheFileBehindTheDescriptor) {
  UniqueFd shell = Open("/bin/sh", O_PATH).value();
  ExitInfo ended = InChild([&] {
    (void)ExecuteDescriptor(shell.get(), {"sh", "-c", "exit $CODE"}, {"CODE=7"});
    return 1;
  });
  EXPECT_EQ(ended.status, 7);
}

TEST(ExecuteDescriptorTest, WhatCannotBeExecutedSaysSo) {
  UniqueFd passwd = Open("/etc/passwd", O_PATH).value();
  Error error = ExecuteDescriptor(passwd.get(), {"passwd"}, {});
  EXPECT_EQ(error.err, EACCES);
}

TEST(RunProgramTest, StatusAndErrorTextComeBack) {
  ProgramResult result =
      RunProgram({"/bin/sh", "-c", "echo no >&2; echo lost; exit 3"}, kTestTimeoutMs).value();
  EXPECT_EQ(result.exit.status, 3);
  EXPECT_EQ(result.errors, "no\n");
}

TEST(RunProgramTest, NothingOfTheEnvironmentIsPassed) {
  ASSERT_EQ(::setenv("TASKCELL_LEAK", "1", 1), 0);
  ProgramResult result =
      RunProgram({"/bin/sh", "-c", "echo x$TASKCELL_LEAK >&2"}, kTestTimeoutMs).value();
  EXPECT_EQ(result.errors, "x\n");
}

TEST(RunProgramTest, AProgramThatDoesNotEndIsKilled) {
  Result<ProgramResult> result = RunProgram({"/bin/sleep", "100"}, 50);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().err, ETIMEDOUT);
}

TEST(RunProgramTest, AProgramThatIsNotThereIsNamed) {
  Result<ProgramResult> result = RunProgram({"/nonexistent/program"}, kTestTimeoutMs);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().err, ENOENT);
}

TEST(PrivilegeTest, NotDumpableAndNoNewPrivilegesHold) {
  ExitInfo ended = InChild([] {
    if (!SetNotDumpable().ok() || !SetNoNewPrivileges().ok()) return 1;
    std::string status = ReadFile(AT_FDCWD, "/proc/self/status", 1U << 16U).value();
    if (status.find("NoNewPrivs:\t1") == std::string::npos) return 2;
    return ::geteuid() != 0 && ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC) >= 0 ? 3 : 0;
  });
  EXPECT_EQ(ended.status, 0);
}

TEST(PrivilegeTest, DroppedCapabilitiesAreGoneFromEverySet) {
  ExitInfo ended = InChild([] {
    if (::geteuid() == 0 && !(DropBoundingSet().ok() && LockSecurebits().ok())) return 1;
    if (!DropCapabilities().ok()) return 2;
    std::string status = ReadFile(AT_FDCWD, "/proc/self/status", 1U << 16U).value();
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
      if (status.find(std::string(set) + ":\t0000000000000000") == std::string::npos) return 3;
    }
    if (::geteuid() == 0 && status.find("CapBnd:\t0000000000000000") == std::string::npos) return 4;
    return 0;
  });
  EXPECT_EQ(ended.status, 0);
}

}  // namespace
}  // namespace taskcell::sys
