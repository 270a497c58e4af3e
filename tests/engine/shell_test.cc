#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "tests/engine/script_fixture.h"
#include "tests/support/on_terminal.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// `taskcell shell` at a terminal, with the test typing.
class ShellTest : public ScriptFixture {
 protected:
  static void Await(OnTerminal& terminal, std::string_view text) {
    const std::string screen = terminal.ScreenUntil(text);
    ASSERT_THAT(screen, HasSubstr(std::string(text)));
  }

  // Types a command that ends with a mark only its run can show.
  static std::string Ask(OnTerminal& terminal, const std::string& command) {
    static int number = 40;
    ++number;
    terminal.Type(Text(command, "; echo done-$((", number, "*2))-\n"));
    return terminal.ScreenUntil(Text("done-", number * 2, "-"));
  }
};

TEST_F(ShellTest, ItIsTheTasksCellWithoutCredentialAndWithoutAWayToAProvider) {
  Put("agents/a1/SOUL.md", "the agent's own canary");
  GiveHomeToUser();
  OnTerminal terminal(ShellCommand(), BecomeUser());
  Await(terminal, "the cell is verified");
  EXPECT_THAT(Ask(terminal, "cat /agent/SOUL.md"), HasSubstr("the agent's own canary"));
  EXPECT_THAT(Ask(terminal, "echo at=$PWD= home=$HOME= term=$TERM="),
              HasSubstr("at=/workspace= home=/tmp/dudu-private/home= term=xterm="));
  const std::string seen = Ask(terminal, "env; cat /proc/self/status; cat /proc/net/tcp");
  EXPECT_THAT(seen, Not(HasSubstr(std::string(kKey))));
  EXPECT_THAT(seen, Not(HasSubstr("OPENAI")));
  EXPECT_THAT(seen, HasSubstr("CapBnd:\t0000000000000000"));
  EXPECT_THAT(seen, HasSubstr("Seccomp:\t2"));
  EXPECT_THAT(seen, Not(HasSubstr("0100007F:")));  // nobody listens on 127.0.0.1
  EXPECT_THAT(Ask(terminal, "echo x > /agent/x"), HasSubstr("Read-only file system"));
  terminal.Type("exit 7\n");
  EXPECT_EQ(terminal.Wait(), 7);
  EXPECT_EQ(Containers(), 0);
}

TEST_F(ShellTest, ItsWindowIsThatOfThePersonAlsoOnceItChanges) {
  GiveHomeToUser();
  OnTerminal terminal(ShellCommand(), BecomeUser());
  const std::string size = "python3 -c 'import os; print(\"size\", *os.get_terminal_size())'";
  Await(terminal, "the cell is verified");
  terminal.SetWindow(33, 77);
  ASSERT_TRUE(WaitFor([&] { return Ask(terminal, size).find("size 77 33") != std::string::npos; }));
  terminal.SetWindow(44, 111);
  EXPECT_TRUE(
      WaitFor([&] { return Ask(terminal, size).find("size 111 44") != std::string::npos; }));
  terminal.Type("exit\n");
  EXPECT_EQ(terminal.Wait(), 0);
}

TEST_F(ShellTest, TheInterruptKeyIsTheCellsAndASignalEndsIt) {
  GiveHomeToUser();
  const std::string mark = Mark();
  OnTerminal terminal(ShellCommand(), BecomeUser());
  Await(terminal, "the cell is verified");
  terminal.Type(Text("sleep ", mark, "\n"));
  ASSERT_TRUE(WaitFor([&] { return IsRunning(mark); }));
  terminal.Type("\x03");
  EXPECT_TRUE(WaitFor([&] { return !IsRunning(mark); }));
  EXPECT_THAT(Ask(terminal, "echo still here"), HasSubstr("still here"));
  terminal.Signal(SIGTERM);
  EXPECT_EQ(terminal.Wait(), 130);
  EXPECT_EQ(Containers(), 0);
}

TEST_F(ShellTest, AClientThatIsKilledLeavesNothingForLongerThanASweep) {
  GiveHomeToUser();
  const std::string mark = Mark();
  {
    OnTerminal terminal(ShellCommand(), BecomeUser());
    Await(terminal, "the cell is verified");
    terminal.Type(Text("sleep ", mark, "\n"));
    ASSERT_TRUE(WaitFor([&] { return IsRunning(mark); }));
    terminal.Signal(SIGKILL);
    EXPECT_EQ(terminal.Wait(), 128 + SIGKILL);
  }
  EXPECT_TRUE(WaitFor([&] { return !IsRunning(mark); }));
  EXPECT_TRUE(WaitFor([&] { return Containers() == 0; }));
  // The engine may be about to remove the container still.
  EXPECT_TRUE(WaitFor([&] { return SweepLater()["directories"].size() == 1U; })) << SweepLater();
}

TEST_F(ShellTest, WithoutATerminalOrACellOfItsOwnThereIsNone) {
  std::vector<std::string> behind = {"/bin/sh", "-mc", "\"$@\" & wait $!", "sh"};
  for (const std::string& word : ShellCommand()) behind.push_back(word);
  OnTerminal background(behind, BecomeUser());
  Await(background, "another job has this one");
  EXPECT_EQ(background.Wait(), 2);
  const Outcome piped = Client({"shell", "a1"});
  EXPECT_EQ(piped.status, 2) << piped.err;
  EXPECT_THAT(piped.err, HasSubstr("standard input and output must be one"));
  Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n");
  GiveHomeToUser();
  OnTerminal terminal(ShellCommand(), BecomeUser());
  Await(terminal, "sandbox_disabled");
  EXPECT_EQ(terminal.Wait(), 3);
}

}  // namespace
}  // namespace taskcell::test
