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
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
#include "tests/support/fixture.h"
#include "tests/support/on_terminal.h"

namespace taskcell::test {
namespace {

using ::testing::HasSubstr;

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

TEST(LaunchTerminalTest, AnIgnoredInterruptKeyEndsNeitherLauncherNorProgram) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups");
  OnTerminal shell({"/bin/sh", "-c",
                    "trap '' INT; " + Program("taskcell-launch") +
                        " --timeout 20s -- /bin/sh -c 'read x; echo ready; sleep 1; echo done'; "
                        "echo status:$?"});
  shell.Type("\n");
  EXPECT_THAT(shell.ScreenUntil("ready"), HasSubstr("ready"));
  shell.Type("\x03");
  EXPECT_THAT(shell.ScreenUntil("status:"), HasSubstr("status:0"));
}

// In one pipeline with the launcher, and so in its process group.
TEST(LaunchTerminalTest, APagerBehindTheProgramHasTheTerminal) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups");
  // More than a pipe holds: the program waits for the pager.
  constexpr char kPager[] =
      "import sys, tty; tty.setcbreak(2); print('pager', len(sys.stdin.read()), flush=True)";
  OnTerminal shell({"/bin/sh", "-c",
                    Program("taskcell-launch") +
                        " --timeout 20s -- /bin/sh -c 'head -c 200000 /dev/zero' | "
                        "/usr/bin/python3 -c \"" +
                        kPager + "\"; echo status:$?"});
  EXPECT_THAT(shell.ScreenUntil("status:"),
              testing::AllOf(HasSubstr("pager 200000"), HasSubstr("status:0")));
}

// Whatever --seccomp allows. The control: the same lines outside of a cell are read by the shell.
TEST(LaunchTerminalTest, AProfileThatAllowsEverythingLetsNothingBeTypedForTheCaller) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups");
  std::string directory = "/tmp/taskcell-terminal-test-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  std::filesystem::permissions(directory, std::filesystem::perms(0755));
  const std::string profile = directory + "/profile.json";
  std::ofstream(profile) << R"({"defaultAction":"SCMP_ACT_ALLOW"})";
  const std::string types =
      "/usr/bin/python3 -c \"import fcntl, resource\n"
      "for letter in b'typed\\n':\n"
      "  try: fcntl.ioctl(0, 0x5412, bytes([letter]))\n"
      "  except OSError as error: print('errno', error.errno)\n"
      "try: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
      "except (OSError, ValueError) as error: print('core stays')\"";
  auto screen = [&](const std::string& prefix) {
    OnTerminal shell({"/bin/sh", "-c", prefix + types + "; echo after; read x; echo read:$x"});
    shell.ScreenUntil("after");
    shell.Type("mine\n");
    return shell.ScreenUntil("read:");
  };
  const std::string outside = screen("");
  EXPECT_TRUE(outside.find("read:typed") != std::string::npos ||
              outside.find("errno 5") != std::string::npos)  // a kernel that types for nobody
      << outside;
  EXPECT_THAT(outside, testing::Not(HasSubstr("core stays")));
  EXPECT_THAT(
      screen(Program("taskcell-launch") + " --seccomp " + profile + " -- "),
      testing::AllOf(HasSubstr("errno 1"), HasSubstr("core stays"), HasSubstr("read:mine")));
  std::filesystem::remove_all(directory);
}

// A job that tries to have the terminal it was started from without being in its foreground there.
class BackgroundJobTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups");
    std::string pattern = "/tmp/taskcell-terminal-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
    std::ofstream(path_ + "/job.py") << R"(
import errno, os, signal, termios
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU, signal.SIGTTIN])
said = []
def attempt(name, call):
  try: call(); said.append(name + ":done")
  except (OSError, termios.error) as error: said.append(name + ":" + errno.errorcode[error.args[0]])
try:
  tty = os.open("/dev/tty", os.O_RDWR)
  attempt("modes", lambda: termios.tcsetattr(tty, termios.TCSANOW, termios.tcgetattr(tty)))
  attempt("foreground", lambda: os.tcsetpgrp(tty, os.getpgrp()))
except OSError as error: said.append("open:" + errno.errorcode[error.errno])
print(" ".join(said), flush=True)
)";
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // What the job says: in the cell, and outside of one (the control).
  std::string InCell(const std::string& redirection, const std::string& options = "") {
    return Run(Program("taskcell-launch") + " " + options + " --timeout 10s --ro " + path_ +
               ":/job -- /usr/bin/python3 /job/job.py" + redirection);
  }
  std::string Outside(const std::string& redirection) {
    return Run("/usr/bin/python3 " + path_ + "/job.py" + redirection);
  }

 private:
  std::string Run(const std::string& command) {
    std::string out = path_ + "/out";
    OnTerminal shell({"/bin/sh", "-c",
                      "set -m; " + command + " >" + out + " 2>&1 & wait; cat " + out + " >" + out +
                          "2; mv " + out + "2 " + out + ".done; sleep 100"});
    std::ifstream said;
    for (int waited = 0; waited < 1500 && !said.is_open(); ++waited) {
      said.open(out + ".done");
      ::usleep(10'000);
    }
    std::string text{std::istreambuf_iterator<char>(said), {}};
    std::filesystem::remove(out + ".done");
    return text;
  }
  std::string path_;
};

TEST_F(BackgroundJobTest, WithTheTerminalAsItsInputCanNeitherSetNorTakeIt) {
  EXPECT_EQ(Outside(""), "modes:done foreground:done\n");
  EXPECT_EQ(InCell(""), "modes:EPERM foreground:EPERM\n");
}

TEST_F(BackgroundJobTest, WithItsStreamsElsewhereHasNoTerminal) {
  EXPECT_EQ(Outside(" </dev/null"), "modes:done foreground:done\n");
  EXPECT_EQ(InCell(" </dev/null"), "open:ENXIO\n");
  EXPECT_EQ(InCell(" </dev/null", "--output-size 1M"), "open:ENXIO\n");
}

// What the job may have changed: modes, and flags of the open files; each is shown to be changed
// while the job runs (control), and as it was afterwards.
constexpr char kShow[] =
    "import fcntl, os, termios\n"
    "def show(name):\n"
    "  flags = [fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_ASYNC | os.O_APPEND) for fd "
    "in (0, 1, 2)]\n"
    "  print(name, flags, termios.tcgetattr(1)[3] & (termios.ICANON | termios.ECHO), flush=True)\n";
constexpr char kSpoil[] =
    "import sys, tty\n"
    "tty.setraw(1)\n"
    "[fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC | os.O_APPEND) for fd in (0, 1, "
    "2)]\n"
    "show('during')\n";

class SpoiledTerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups");
    std::string pattern = "/tmp/taskcell-terminal-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
    std::ofstream(path_ + "/show.py") << kShow << "show('outside')\n";
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // The screen of a shell that looks at its terminal, runs a job that spoils it and goes on with
  // `then`, and looks again.
  std::string Screen(const std::string& launcher_options, const std::string& then,
                     const std::string& redirection = "") {
    std::ofstream(path_ + "/job.py") << kShow << kSpoil << then;
    std::string look = "/usr/bin/python3 " + path_ + "/show.py; ";
    OnTerminal shell({"/bin/sh", "-c",
                      look + Program("taskcell-launch") + " " + launcher_options + " --ro " +
                          path_ + ":/job -- /usr/bin/python3 /job/job.py" + redirection +
                          "; echo status:$?; " + look + "echo the end"});
    return shell.ScreenUntil("the end");
  }

  static constexpr char kSpoiled[] = "during [11264, 11264, 11264] 0";

  static void ExpectRestored(const std::string& screen) {
    constexpr char kSane[] = "outside [0, 0, 0] 10";
    std::size_t first = screen.find(kSane);
    std::size_t spoiled = screen.find(kSpoiled);
    EXPECT_NE(first, screen.npos) << screen;
    EXPECT_NE(spoiled, screen.npos) << screen;
    EXPECT_NE(screen.find(kSane, first + 1), screen.npos) << screen;
  }

  std::string path_;
};

TEST_F(SpoiledTerminalTest, AfterTheProgramEndedItIsAsItWas) {
  std::string screen = Screen("", "sys.exit(3)\n");
  ExpectRestored(screen);
  EXPECT_THAT(screen, HasSubstr("status:3"));
}

TEST_F(SpoiledTerminalTest, AfterTheProgramWasKilledItIsAsItWas) {
  std::string screen = Screen("", "os.kill(os.getpid(), 9)\n");
  ExpectRestored(screen);
  EXPECT_THAT(screen, HasSubstr("status:137"));
}

TEST_F(SpoiledTerminalTest, AfterTheTimeoutItIsAsItWas) {
  // How long the program takes to spoil it on a busy machine is not known: longer, until it has.
  std::string screen;
  for (int seconds = 2; seconds < 60 && screen.find(kSpoiled) == screen.npos; seconds *= 2)
    screen = Screen(Text("--timeout ", seconds, "s"), "import time; time.sleep(100)\n");
  ExpectRestored(screen);
  EXPECT_THAT(screen, HasSubstr("status:124"));
}

// It takes less than it promised, and then nothing.
TEST(LaunchTerminalTest, ATerminalThatNobodyReadsDoesNotKeepTheLauncher) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups");
  std::string pattern = "/tmp/taskcell-terminal-test-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  std::string status = pattern + "/status";
  OnTerminal shell({"/bin/sh", "-c",
                    Program("taskcell-launch") +
                        " --output-size 100M --timeout 500ms --kill-after 100ms -- /usr/bin/yes; "
                        "echo $? >" +
                        status + "; sleep 100"});
  std::string seen;
  for (int waited = 0; waited < 1500 && seen.empty(); ++waited) {
    ::usleep(10'000);
    std::getline(std::ifstream(status), seen);
  }
  EXPECT_EQ(seen, "124");
  std::filesystem::remove_all(pattern);
}

// A terminal of the cell's own (--tty).
class OwnTerminalTest : public testing::Test {
 protected:
  void SetUp() override { TASKCELL_REQUIRE(::geteuid() == 0, "needs root or delegated cgroups"); }
  static std::string WithTty(const std::string& script) {
    return Program("taskcell-launch") + " --tty --timeout 60s -- /bin/sh -c '" + script + "'";
  }
};

TEST_F(OwnTerminalTest, HasANameInTheCellAndItsKeysAndItsWindow) {
  OnTerminal shell({"/bin/sh", "-c",
                    "stty rows 31 cols 77; " +
                        WithTty("tty; stty size; ps -o tty= -p $$; read x; echo got:$x; exit 3") +
                        "; echo status:$?"});
  EXPECT_THAT(shell.ScreenUntil("pts/0\r\n"), HasSubstr("/dev/pts/0"));
  EXPECT_THAT(shell.ScreenUntil("31 77"), HasSubstr("31 77"));
  shell.Type("one\r");
  EXPECT_THAT(shell.ScreenUntil("got:one"), HasSubstr("got:one"));
  EXPECT_THAT(shell.ScreenUntil("status:"), HasSubstr("status:3"));
}

TEST_F(OwnTerminalTest, TheInterruptKeyReachesTheProgramAndNotTheLauncher) {
  OnTerminal shell(
      {"/bin/sh", "-c",
       WithTty("trap \"echo caught; exit 5\" INT; echo ready; while :; do sleep 1; done") +
           "; echo status:$?"});
  EXPECT_THAT(shell.ScreenUntil("ready"), HasSubstr("ready"));
  shell.Type("\x03");
  EXPECT_THAT(shell.ScreenUntil("status:"),
              testing::AllOf(HasSubstr("caught"), HasSubstr("status:5")));
}

TEST_F(OwnTerminalTest, AChangeOfTheWindowReachesTheProgram) {
  OnTerminal shell({"/bin/sh", "-c",
                    WithTty("trap \"stty size\" WINCH; echo ready; while :; do sleep 0.1; done")});
  EXPECT_THAT(shell.ScreenUntil("ready"), HasSubstr("ready"));
  shell.SetWindow(41, 99);
  EXPECT_THAT(shell.ScreenUntil("41 99"), HasSubstr("41 99"));
}

TEST_F(OwnTerminalTest, TheCallersTerminalIsNotRawAfterwards) {
  OnTerminal shell({"/bin/sh", "-c",
                    "stty -a | md5sum >/tmp/taskcell-modes-$$; " + WithTty("stty raw; exit 0") +
                        "; stty -a | md5sum | cmp - /tmp/taskcell-modes-$$ && echo same:modes; rm "
                        "/tmp/taskcell-modes-$$; echo over"});
  EXPECT_THAT(shell.ScreenUntil("over"), HasSubstr("same:modes"));
}

// TIOCSTI would type into the terminal what a shell outside reads later.
TEST_F(OwnTerminalTest, NothingCanBeTypedIntoItFromInside) {
  std::string script =
      "import fcntl, termios\n"
      "for request in (termios.TIOCSTI, 0x541c):\n"
      "  try: fcntl.ioctl(0, request, b'x'); print('typed')\n"
      "  except OSError as error: print('errno', error.errno)\n";
  std::string file = "/tmp/taskcell-sti-" + std::to_string(::getpid()) + ".py";
  std::ofstream(file) << script;
  OnTerminal shell({"/bin/sh", "-c",
                    Program("taskcell-launch") + " --tty --ro " + file +
                        ":/run/sti.py -- /usr/bin/python3 /run/sti.py; echo over"});
  EXPECT_THAT(shell.ScreenUntil("over"),
              testing::AllOf(HasSubstr("errno 1\r\nerrno 1"), testing::Not(HasSubstr("typed"))));
  std::filesystem::remove(file);
}

// What the program prints is for whoever watches; what is told of it must not pass for that.
TEST_F(OwnTerminalTest, ControlSequencesComeFromTheProgramAndNeverInAMessage) {
  const std::string launch = Program("taskcell-launch") + " --tty -- ";
  OnTerminal shell({"/bin/sh", "-c",
                    WithTty("printf \"<\\033[31mred\\033[m>\"") + "; " + launch +
                        "'/no/\x1b]0;owned\x07\xc2\x9b"
                        "31m'; echo status:$?"});
  const std::string screen = shell.ScreenUntil("status:127");
  EXPECT_THAT(screen, HasSubstr("<\x1b[31mred\x1b[m>"));
  EXPECT_THAT(screen, HasSubstr(R"('/no/\x1b]0;owned\x07\xc2\x9b31m')"));
  EXPECT_THAT(screen, testing::Not(HasSubstr("\x1b]0;")));
  EXPECT_THAT(screen, testing::Not(HasSubstr("\xc2\x9b")));
}

TEST_F(OwnTerminalTest, AProgramThatClosesItsStreamsKeepsItsTerminalAndItsStatus) {
  OnTerminal shell({"/bin/sh", "-c",
                    WithTty("exec 0<&- 1>&- 2>&-; sleep 0.3; echo still >/dev/tty; exit 4") +
                        "; echo status:$?"});
  EXPECT_THAT(shell.ScreenUntil("status:"),
              testing::AllOf(HasSubstr("still"), HasSubstr("status:4")));
}

TEST_F(OwnTerminalTest, WithoutATerminalItIsRefused) {
  Outcome ran = test::Run({Program("taskcell-launch"), "--tty", "--", "/bin/echo", "ran"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("--tty is for a person at a terminal"));
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace taskcell::test
