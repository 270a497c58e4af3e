#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>

#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "tests/integration/launcher/init/init_cell.h"

namespace taskcell::test {
namespace {

using ::testing::HasSubstr;

// A terminal whose other end is the cell's 0, 1 and 2.
class TerminalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    master_ = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(master_.valid());
    ASSERT_EQ(::grantpt(master_.get()), 0);
    ASSERT_EQ(::unlockpt(master_.get()), 0);
    char name[64];
    ASSERT_EQ(::ptsname_r(master_.get(), name, sizeof name), 0);
    setup_.terminal = name;
  }

  void Type(std::string_view text) { ASSERT_TRUE(sys::WriteAll(master_.get(), text).ok()); }

  // What appears on the terminal until `wanted` does, or 5 seconds have passed.
  std::string ScreenUntil(std::string_view wanted) {
    std::string screen;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (screen.find(wanted) == std::string::npos && std::chrono::steady_clock::now() < end) {
      Result<short> ready = sys::Poll(master_.get(), 1 /* POLLIN */, 100);
      if (!ready.ok() || ready.value() == 0) continue;
      char chunk[256];
      Result<std::size_t> got = sys::Read(master_.get(), chunk);
      if (!got.ok() || got.value() == 0) break;
      screen.append(chunk, got.value());
    }
    return screen;
  }

  static cell::Job Interactive(const std::string& script) {
    cell::Job job = Shell(script);
    job.stdio = cell::JobStdio::kInherit;
    job.foreground = true;
    return job;
  }

  UniqueFd master_;
  InitCell::Setup setup_;
};

TEST_F(TerminalTest, AForegroundJobReadsAndWritesTheTerminal) {
  InitCell cell(setup_);
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Interactive("test -t 0 && echo ready; read line; echo got:$line")));
  EXPECT_THAT(ScreenUntil("ready"), HasSubstr("ready"));
  Type("hello\n");
  EXPECT_THAT(ScreenUntil("got:"), HasSubstr("got:hello"));
  InitCell::Output output = cell.Finish();
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->code, 0);
}

TEST_F(TerminalTest, TheInterruptKeyReachesAJobThatHasTheTerminalAndNotInit) {
  InitCell cell(setup_);
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Interactive(
      "trap 'echo caught; exit 5' INT; read x; echo ready; while :; do sleep 0.05; done")));
  Type("\n");
  EXPECT_THAT(ScreenUntil("ready"), HasSubstr("ready"));
  Type("\x03");
  InitCell::Output output = cell.Finish();
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->code, 5);
  cell.Send(cell::FrameType::kDone);
  EXPECT_EQ(cell.Wait(), 0);
}

TEST_F(TerminalTest, TheStopKeyDoesNotHangTheCell) {
  InitCell cell(setup_);
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Interactive("echo ready; sleep 0.5; echo still; exit 3")));
  EXPECT_THAT(ScreenUntil("ready"), HasSubstr("ready"));
  Type("\x1a");
  InitCell::Output output = cell.Finish();
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->code, 3);
}

TEST_F(TerminalTest, ABackgroundJobThatReadsTheTerminalWaitsWithoutSpinning) {
  InitCell cell(setup_);
  (void)cell.Attestation();
  cell::Job job = Interactive("read line");
  job.foreground = false;
  job.timeout_ms = 700;
  ASSERT_TRUE(cell.Start(job));
  InitCell::Output output = cell.Finish();
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->reason, cell::ExitReason::kDeadline);
  EXPECT_LT(output.exit->user_us + output.exit->system_us, 200'000U);
}

}  // namespace
}  // namespace taskcell::test
