#include "probe/cells/gate_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/other_process.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"

namespace taskcell::probe {
namespace {

using std::chrono::milliseconds;

class GateDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/taskcell-gate-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    run_ = pattern;
  }
  void TearDown() override {
    EXPECT_EQ(::rmdir(run_.c_str()), 0) << "something was left in the run directory";
  }

  std::string Socket() const { return run_ + "/gate.d/gate"; }

  // Runs `body` in a child, as the cell's processes would; it is killed with the fixture.
  template <typename Body>
  sys::Child Spawn(Body body) {
    pid_t pid = ::fork();
    if (pid == 0) {
      body();
      ::_exit(0);
    }
    return sys::Child(pid, sys::OpenPidfd(pid).value());
  }
  static void Sleep() { ::pause(); }
  void Connect() const {
    auto connection = sys::ConnectUnix(Socket(), SOCK_SEQPACKET);
    if (!connection.ok()) ::_exit(1);
    (void)connection.value().Release();
  }
  Result<UniqueFd> Accept(GateDirectory& gate, const sys::Child& child, int ms = 5000) {
    return gate.AcceptFrom(child.pid(), child.pidfd(),
                           GateDirectory::Clock::now() + milliseconds(ms));
  }
  void ExpectMismatch(const Result<UniqueFd>& gate, const std::string& text) {
    ASSERT_FALSE(gate.ok());
    EXPECT_EQ(gate.error().code, "cell_mismatch");
    EXPECT_NE(gate.error().text.find(text), std::string::npos) << gate.error().text;
  }

  std::string run_;
};

TEST_F(GateDirectoryTest, IsOpenToTheCellBelowADirectoryThatIsClosed) {
  auto gate = GateDirectory::Make(run_);
  ASSERT_TRUE(gate.ok()) << gate.error().text;
  struct stat status;
  ASSERT_EQ(::stat((run_ + "/gate.d").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0711U);
  EXPECT_EQ(gate->mount().inode, status.st_ino);
  EXPECT_EQ(gate->mount().source, run_ + "/gate.d");
  ASSERT_EQ(::stat(Socket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0666U);
}

TEST_F(GateDirectoryTest, ARunDirectoryOpenToOthersIsRefused) {
  for (mode_t mode : {0701U, 0710U, 0770U}) {
    ASSERT_EQ(::chmod(run_.c_str(), mode), 0);
    auto gate = GateDirectory::Make(run_);
    ASSERT_FALSE(gate.ok());
    EXPECT_EQ(gate.error().code, "workspace_failed");
  }
  ASSERT_EQ(::chmod(run_.c_str(), 0700), 0);
  EXPECT_TRUE(GateDirectory::Make(run_).ok());
}

TEST_F(GateDirectoryTest, ARunDirectoryBehindALinkIsRefused) {
  std::string link = run_ + ".link";
  ASSERT_EQ(::symlink(run_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(GateDirectory::Make(link).ok());
  ASSERT_EQ(::unlink(link.c_str()), 0);
}

TEST_F(GateDirectoryTest, APathLongerThanASocketsAddressWorks) {
  std::string deep = run_;
  std::vector<std::string> made;
  while (deep.size() < 300) {
    deep += "/" + std::string(60, 'd');
    ASSERT_EQ(::mkdir(deep.c_str(), 0700), 0);
    made.push_back(deep);
  }
  EXPECT_TRUE(GateDirectory::Make(deep).ok());
  for (auto it = made.rbegin(); it != made.rend(); ++it) EXPECT_EQ(::rmdir(it->c_str()), 0);
}

TEST_F(GateDirectoryTest, TheExpectedProcessIsAcceptedAndTheSocketIsGoneAfterwards) {
  auto gate = GateDirectory::Make(run_).value();
  sys::Child child = Spawn([&] {
    Connect();
    Sleep();
  });
  auto accepted = Accept(gate, child);
  ASSERT_TRUE(accepted.ok()) << accepted.error().text;
  EXPECT_EQ(::access(Socket().c_str(), F_OK), -1);
  EXPECT_EQ(sys::ConnectUnix(Socket(), SOCK_SEQPACKET).error().err, ENOENT);
}

TEST_F(GateDirectoryTest, AnotherProcessIsAMismatch) {
  auto gate = GateDirectory::Make(run_).value();
  sys::Child expected = Spawn(Sleep);
  sys::Child other = Spawn([&] {
    Connect();
    Sleep();
  });
  ExpectMismatch(Accept(gate, expected), Text("process ", other.pid(), " connected"));
}

TEST_F(GateDirectoryTest, TwoConnectionsAreAMismatch) {
  auto gate = GateDirectory::Make(run_).value();
  auto ready = sys::MakePipe().value();
  sys::Child child = Spawn([&] {
    Connect();
    Connect();
    (void)sys::WriteAll(ready.write_end.get(), "x");
    Sleep();
  });
  char byte;
  ASSERT_EQ(sys::Read(ready.read_end.get(), {&byte, 1}).value(), 1U);
  ExpectMismatch(Accept(gate, child), "second connection");
}

TEST_F(GateDirectoryTest, NobodyIsAMismatchAtTheDeadline) {
  auto gate = GateDirectory::Make(run_).value();
  sys::Child child = Spawn(Sleep);
  auto before = GateDirectory::Clock::now();
  ExpectMismatch(Accept(gate, child, 150), "in time");
  EXPECT_GE(GateDirectory::Clock::now() - before, milliseconds(150));
}

TEST_F(GateDirectoryTest, AProcessThatEndsFirstIsNotWaitedFor) {
  auto gate = GateDirectory::Make(run_).value();
  sys::Child child = Spawn([] {});
  auto before = GateDirectory::Clock::now();
  ExpectMismatch(Accept(gate, child), "ended before it connected");
  EXPECT_LT(GateDirectory::Clock::now() - before, milliseconds(4000));
}

TEST_F(GateDirectoryTest, AProcessThatConnectsAndEndsProvesNothing) {
  auto gate = GateDirectory::Make(run_).value();
  sys::Child child = Spawn([&] { Connect(); });
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  ExpectMismatch(Accept(gate, child), "ended as it connected");
}

}  // namespace
}  // namespace taskcell::probe
