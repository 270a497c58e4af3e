// What a command prints that cannot be printed, or is asked for wrongly: the same for every command
// of every program.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ostream>

#include "gateway/ledger/ledger.h"
#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "tests/support/fixture.h"
#include "tests/support/temp_directory.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kTask[] = "0123456789abcdef0123456789abcdef";

struct Command {
  std::vector<std::string> argv;  // "HOME": a home with one task
  int status;                     // where nothing could be written
};
void PrintTo(const Command& command, std::ostream* out) {
  for (const std::string& word : command.argv) *out << word << " ";
}

class OutputTest : public testing::TestWithParam<Command> {
 protected:
  void SetUp() override {
    home_.Put("config.toml", "[taskcell]\nengine = \"native\"\n");
    home_.Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n");
    UniqueFd home(::open(home_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto ledger = gateway::Ledger::Open(home.get(), home_.path());
    ASSERT_TRUE(ledger.ok()) << ledger.error().text;
    gateway::TaskRow task;
    task.id = kTask;
    ASSERT_TRUE(ledger->Start(task).ok());
    gateway::TaskEnd end;
    end.state = gateway::TaskState::kDone;
    end.code = "ok";
    end.ended_ms = 1;
    ASSERT_TRUE(ledger->Finish(kTask, end).ok());
  }

  // The command with `in_child` having arranged its streams.
  Outcome RunWith(void (*in_child)()) {
    std::vector<std::string> argv = GetParam().argv;
    argv[0] = Program(argv[0]);
    for (std::string& word : argv)
      if (word == "HOME") word = home_.path();
    RunOptions options;
    if (in_child != nullptr) options.in_child = in_child;
    return test::Run(argv, options);
  }
  std::string Prefix() const { return GetParam().argv[0] + ": "; }

  TempDirectory home_{"output"};
};

void Become1(int fd) {
  if (::dup2(fd, 1) != 1) ::_exit(90);
}

TEST_P(OutputTest, IsThereWhereItCanBeWritten) {
  Outcome printed = RunWith(nullptr);
  EXPECT_NE(printed.out, "");
  EXPECT_THAT(printed.err, Not(HasSubstr("standard output")));
}

TEST_P(OutputTest, OnAFullDiskFailsAndSaysSo) {
  Outcome full = RunWith([] { Become1(::open("/dev/full", O_WRONLY | O_CLOEXEC)); });
  EXPECT_EQ(full.status, GetParam().status);
  EXPECT_THAT(full.err, HasSubstr(Prefix() + "standard output: "));
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
}

TEST_P(OutputTest, ToAReaderWhoIsGoneFailsAndSaysSo) {
  Outcome gone = RunWith([] {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(90);
    Become1(ends[1]);
  });
  EXPECT_EQ(gone.status, GetParam().status);
  EXPECT_THAT(gone.err, HasSubstr(Prefix() + "standard output: "));
  EXPECT_THAT(gone.err, HasSubstr("Broken pipe"));
}

TEST_P(OutputTest, WithoutAnyPlaceForItNothingIsDone) {
  Outcome closed = RunWith([] { (void)::close(1); });
  EXPECT_EQ(closed.status, 2);
  EXPECT_EQ(closed.err,
            Prefix() + "standard output is closed: what was asked for would have nowhere to go\n");
}

INSTANTIATE_TEST_SUITE_P(
    OfEveryCommand, OutputTest,
    testing::Values(Command{{"taskcell", "--help"}, 1}, Command{{"taskcell", "--version"}, 1},
                    Command{{"taskcell", "ps", "--home", "HOME"}, 1},
                    Command{{"taskcell", "ps", "--json", "--home", "HOME"}, 1},
                    Command{{"taskcell", "show", kTask, "--home", "HOME"}, 1},
                    Command{{"taskcell", "show", kTask, "--json", "--home", "HOME"}, 1},
                    Command{{"taskcell", "team-gate", "a1", "--home", "HOME"}, 1},
                    Command{{"taskcell", "team-gate", "a1", "--json", "--home", "HOME"}, 1},
                    Command{{"taskcell", "accounts", "--home", "HOME"}, 1},
                    Command{{"taskcell", "accounts", "--json", "--home", "HOME"}, 1},
                    Command{{"taskcell", "logs", kTask, "--json", "--home", "HOME"}, 1},
                    Command{{"taskcell", "sweep", "--home", "HOME"}, 1},
                    Command{{"taskcell", "sweep", "--json", "--home", "HOME"}, 1},
                    Command{{"taskcell", "doctor", "--home", "HOME"}, 2},
                    Command{{"taskcell", "doctor", "--json", "--home", "HOME"}, 2},
                    Command{{"taskcell", "config", "check", "--home", "HOME"}, 2},
                    Command{{"taskcell-probe", "--help"}, 3},
                    Command{{"taskcell-probe", "--version"}, 3}, Command{{"taskcell-probe"}, 3},
                    Command{{"taskcell-probe", "--json"}, 3},
                    Command{{"taskcell-probe", "--explain", "userns"}, 3},
                    Command{{"taskcell-probe", "cgroup"}, 3},
                    Command{{"taskcell-probe", "delegate", "--user", "1"}, 3},
                    Command{{"taskcell-probe", "mounts", "HOME"}, 3},
                    Command{{"taskcell-probe", "mounts", "-0", "HOME"}, 3},
                    Command{{"taskcell-probe", "attack", "--list"}, 3}));

TEST(UsageTest, EveryProgramSaysWhoSpeaksAndWhereToReadOn) {
  for (const char* words :
       {"taskcell --nonsense", "taskcell ps nonsense", "taskcell", "taskcell-probe --nonsense",
        "taskcell-probe nonsense", "taskcell-probe mounts", "taskcell-probe --uid x"}) {
    std::vector<std::string> argv;
    for (std::string_view word : Split(words, ' ')) argv.emplace_back(word);
    const std::string name = argv[0];
    argv[0] = Program(name);
    Outcome refused = test::Run(argv);
    EXPECT_EQ(refused.status, 2) << words;
    EXPECT_EQ(refused.out, "") << words;
    EXPECT_THAT(refused.err, StartsWith(name + ": ")) << words;
    EXPECT_THAT(refused.err, HasSubstr("; see " + name + " --help\n")) << words;
  }
}

}  // namespace
}  // namespace taskcell::test
