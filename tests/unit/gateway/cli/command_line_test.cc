#include "gateway/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace taskcell::gateway {
namespace {

using testing::HasSubstr;
using What = CommandLine::What;

CommandLine Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "taskcell");
  const int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  return ParseCommandLine(count, words.data());
}

TEST(CommandLineTest, AgentPromptAndOptionsAreTakenInAnyOrder) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"run", "a", "hi", "--home", "/h", "--json"},
        std::vector<const char*>{"run", "--json", "--home=/h", "a", "hi"}}) {
    CommandLine line = Parse(words);
    EXPECT_EQ(line.what, What::kRun) << line.text;
    EXPECT_EQ(line.options.agent, "a");
    EXPECT_EQ(line.options.prompt, "hi");
    EXPECT_EQ(line.options.home, "/h");
    EXPECT_TRUE(line.options.json);
  }
  EXPECT_EQ(Parse({"run", "a"}).options.prompt, "-");
  EXPECT_EQ(Parse({"run", "a", "- a list"}).options.prompt, "- a list");
  EXPECT_EQ(Parse({"config", "check", "--json"}).what, What::kConfigCheck);
  EXPECT_TRUE(Parse({"ps", "--all"}).all);
  EXPECT_EQ(Parse({"show", "ab"}).task, "ab");
  EXPECT_EQ(Parse({"sweep", "--dry-run"}).what, What::kSweep);
  CommandLine gate = Parse({"team-gate", "a", "--gate", "always_team"});
  EXPECT_EQ(gate.what, What::kTeamGate);
  EXPECT_EQ(gate.options.agent, "a");
  EXPECT_EQ(gate.team_gate, "always_team");
  EXPECT_EQ(Parse({"team-gate", "a"}).team_gate, "auto");
}

TEST(CommandLineTest, APromptThatBeginsWithADashIsRefusedWithTheWayOut) {
  for (const char* prompt : {"-h", "-hello", "--help", "--help me", "--bogus", "-x"}) {
    CommandLine line = Parse({"run", "a", prompt});
    EXPECT_EQ(line.what, What::kRefuse) << prompt;
    EXPECT_THAT(line.text, HasSubstr("behind '--'")) << prompt;
  }
}

TEST(CommandLineTest, BehindTwoDashesEverythingIsAPrompt) {
  for (const char* prompt : {"-h", "--help", "--json", "--home=/tmp", "--", "-hello"}) {
    for (const std::vector<const char*>& words :
         {std::vector<const char*>{"run", "--home", "/h", "a", "--", prompt},
          std::vector<const char*>{"run", "a", "--home", "/h", "--", prompt},
          std::vector<const char*>{"run", "--home", "/h", "--", "a", prompt}}) {
      CommandLine line = Parse(words);
      EXPECT_EQ(line.what, What::kRun) << prompt << line.text;
      EXPECT_EQ(line.options.prompt, prompt);
      EXPECT_EQ(line.options.home, "/h");
      EXPECT_FALSE(line.options.json);
    }
  }
}

TEST(CommandLineTest, AnEmptyHomeIsNotTheDefaultOne) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"run", "a", "hi", "--home", ""},
        std::vector<const char*>{"run", "a", "hi", "--home="},
        std::vector<const char*>{"config", "check", "--home", " "}}) {
    CommandLine line = Parse(words);
    EXPECT_EQ(line.what, What::kRefuse);
    EXPECT_THAT(line.text, HasSubstr("--home"));
  }
}

TEST(CommandLineTest, HelpAndVersionArePrintedWhereTheyAreAskedForAlone) {
  EXPECT_EQ(Parse({"--help"}).what, What::kPrint);
  EXPECT_EQ(Parse({"run", "--help"}).what, What::kPrint);
  EXPECT_THAT(Parse({"run", "--help"}).text, HasSubstr("PROMPT"));
  EXPECT_THAT(Parse({"--version"}).text, HasSubstr("taskcell "));
}

TEST(CommandLineTest, ACommandThatIsNoneIsNamed) {
  CommandLine line = Parse({"bogus"});
  EXPECT_EQ(line.what, What::kRefuse);
  EXPECT_THAT(line.text, HasSubstr("no command 'bogus'; see taskcell --help"));
  EXPECT_EQ(Parse({}).what, What::kRefuse);
}

}  // namespace
}  // namespace taskcell::gateway
