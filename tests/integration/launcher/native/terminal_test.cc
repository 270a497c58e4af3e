#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

using ::testing::HasSubstr;

// A program started as a shell would start it: leader of a session on its own terminal.
class OnTerminal {
 public:
  explicit OnTerminal(const std::vector<std::string>& argv) {
    master_ = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::array<char, 64> name = {};
    bool ready = ::grantpt(master_.get()) == 0 && ::unlockpt(master_.get()) == 0 &&
                 ::ptsname_r(master_.get(), name.data(), name.size()) == 0;
    EXPECT_TRUE(ready);
    sys::Cloned cloned = sys::CloneProcess(0).value();
    if (cloned.in_child) {
      ::setsid();
      int terminal = ::open(name.data(), O_RDWR | O_CLOEXEC);
      ::ioctl(terminal, TIOCSCTTY, 0);
      for (int fd : {0, 1, 2}) (void)sys::PlaceDescriptor(terminal, fd);
      (void)sys::Execute(argv[0], argv, {"PATH=/usr/bin:/bin", "LANG=C"});
      sys::ExitNow(127);
    }
    child_ = std::move(cloned.child);
  }

  void Type(std::string_view text) { EXPECT_TRUE(sys::WriteAll(master_.get(), text).ok()); }

  std::string ScreenUntil(std::string_view wanted) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    while (screen_.find(wanted) == std::string::npos && std::chrono::steady_clock::now() < end) {
      Result<short> ready = sys::Poll(master_.get(), POLLIN, 100);
      if (!ready.ok() || ready.value() == 0) continue;
      std::array<char, 512> chunk;
      Result<std::size_t> got = sys::Read(master_.get(), chunk);
      if (!got.ok() || got.value() == 0) break;
      screen_.append(chunk.data(), got.value());
    }
    return screen_;
  }

 private:
  UniqueFd master_;
  sys::Child child_;
  std::string screen_;
};

// The shell around it reads the terminal before and after: the launcher gives back what it lent.
TEST(LaunchTerminalTest, TheProgramReadsTheTerminalAndTheCallerHasItAgainAfterwards) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups");
  std::string script = Program("taskcell-launch") +
                       " --timeout 10s -- /bin/sh -c 'echo ready; read x; echo inside:$x'; "
                       "echo after; read y; echo outside:$y";
  OnTerminal shell({"/bin/sh", "-c", script});
  EXPECT_THAT(shell.ScreenUntil("ready"), HasSubstr("ready"));
  shell.Type("one\n");
  EXPECT_THAT(shell.ScreenUntil("inside:one"), HasSubstr("inside:one"));
  EXPECT_THAT(shell.ScreenUntil("after"), HasSubstr("after"));
  shell.Type("two\n");
  EXPECT_THAT(shell.ScreenUntil("outside:two"), HasSubstr("outside:two"));
}

TEST(LaunchTerminalTest, TheInterruptKeyEndsTheProgramAndTheLauncherSaysSo) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups");
  OnTerminal shell({"/bin/sh", "-c",
                    "trap : INT; " + Program("taskcell-launch") +
                        " --timeout 10s -- /bin/sh -c 'echo ready; exec sleep 1000'; "
                        "echo status:$?"});
  EXPECT_THAT(shell.ScreenUntil("ready"), HasSubstr("ready"));
  shell.Type("\x03");
  EXPECT_THAT(shell.ScreenUntil("status:"), HasSubstr("status:130"));
}

}  // namespace
}  // namespace taskcell::test
