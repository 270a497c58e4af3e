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
  const CommandLine inputs = Parse({"run", "--input", "x", "a", "hi", "--input", "y"});
  EXPECT_EQ(inputs.options.inputs, (std::vector<std::string>{"x", "y"})) << inputs.text;
  EXPECT_EQ(inputs.options.prompt, "hi");
  EXPECT_EQ(Parse({"submit", "a", "hi", "--path", "bus", "--input", "x"}).what, What::kRefuse);
  EXPECT_EQ(Parse({"audit", "verify", "--json"}).what, What::kAuditVerify);
  EXPECT_EQ(Parse({"image", "check"}).what, What::kImageCheck);
  EXPECT_EQ(Parse({"image", "pull", "x:1", "--home", "/h"}).image, "x:1");
  EXPECT_EQ(Parse({"image", "pull", "x:1"}).what, What::kImagePull);
  EXPECT_EQ(Parse({"shell", "a1"}).what, What::kShell);
  EXPECT_EQ(Parse({"shell", "a1"}).options.agent, "a1");
  EXPECT_EQ(Parse({"shell"}).what, What::kRefuse);
  EXPECT_TRUE(Parse({"doctor", "--hostile"}).hostile);
  EXPECT_EQ(Parse({"doctor", "--hostile", "--attack", "a", "--attack", "b"}).attacks,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Parse({"doctor", "--attack", "a"}).what, What::kRefuse);
  EXPECT_FALSE(Parse({"doctor"}).hostile);
  EXPECT_EQ(Parse({"image"}).what, What::kRefuse);
  EXPECT_THAT(Parse({"image", "pull", "x,1"}).text, HasSubstr("the image's name must not"));
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

TEST(CommandLineTest, AScriptComesFromAFileOrStandardInput) {
  CommandLine line = Parse({"script", "--language", "python", "--home", "/h", "--json"});
  EXPECT_EQ(line.what, What::kScript) << line.text;
  EXPECT_EQ(line.script.language, "python");
  EXPECT_EQ(line.script.file, "-");
  EXPECT_EQ(line.script.home, "/h");
  EXPECT_EQ(line.script.timeout_seconds, 30U);
  EXPECT_TRUE(line.script.json);
  line = Parse({"script", "--language", "bash", "x.sh", "--stdin", "in", "--timeout-seconds", "300",
                "--agent", "a"});
  EXPECT_EQ(line.script.file, "x.sh");
  EXPECT_EQ(line.script.input, "in");
  EXPECT_EQ(line.script.timeout_seconds, 300U);
  EXPECT_EQ(line.script.agent, "a");
  EXPECT_TRUE(Parse({"script", "--language", "bash", "--poc"}).script.poc);
  EXPECT_EQ(Parse({"mcp", "--agent", "a"}).what, What::kMcp);
  EXPECT_EQ(Parse({"mcp", "--agent", "a"}).options.agent, "a");
}

TEST(CommandLineTest, WhatNoScriptCanBeIsRefused) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"script"},
        std::vector<const char*>{"script", "--language", "bash", "--timeout-seconds", "0"},
        std::vector<const char*>{"script", "--language", "bash", "--timeout-seconds", "301"},
        std::vector<const char*>{"script", "--language", "bash", "--poc", "--timeout-seconds", "9"},
        std::vector<const char*>{"script", "--language", "bash", "a", "b"},
        std::vector<const char*>{"mcp", "--json"}, std::vector<const char*>{"mcp", "more"}})
    EXPECT_EQ(Parse(words).what, What::kRefuse) << words.back();
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
