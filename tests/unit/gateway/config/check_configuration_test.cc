#include "gateway/config/check_configuration.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

class CheckConfigurationTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(path_.data()), nullptr); }
  void TearDown() override { fs::remove_all(path_); }

  void Put(const std::string& name, std::string_view text) {
    const fs::path file = fs::path(path_) / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  }

  // "file: text", a warning with "warning " before it.
  std::vector<std::string> Check() {
    Result<Home> home = OpenHome(path_);
    EXPECT_TRUE(home.ok());
    std::vector<std::string> lines;
    for (const ConfigProblem& problem : CheckConfiguration(home.value(), environment_))
      lines.push_back(Text(problem.fatal ? "" : "warning ", problem.file, ": ", problem.text));
    return lines;
  }

  std::string path_ = "/tmp/taskcell-check-XXXXXX";
  Environment environment_;
};

TEST_F(CheckConfigurationTest, NothingIsSaidOfAHomeThatIsRight) {
  Put("config.toml", "[container.sandbox]\npids = 64\n[[accounts]]\nid = \"a\"\napi_key = \"k\"\n");
  Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n");
  EXPECT_EQ(Check(), std::vector<std::string>());
}

TEST_F(CheckConfigurationTest, EachSectionAndFileIsJudgedByItself) {
  Put("config.toml",
      "[container.sandbox]\npids = 0\nwhen_unavailable = \"maybe\"\n"
      "[taskcell]\nengine = \"runc\"\n"
      "[[accounts]]\nid = \"a\"\n"
      "[other]\nmemory_bytes = 1\n");
  Put("agents/a1/agent.toml", "[agent]\nname = \"a b\"\n");
  Put("agents/a2/agent.toml", "[agent\n");
  Put("agents/_old/agent.toml", "[agent\n");
  fs::create_directories(path_ + "/agents/none");
  const std::vector<std::string> lines = Check();
  ASSERT_EQ(lines.size(), 7U) << testing::PrintToString(lines);
  EXPECT_EQ(lines[0], "config.toml: [container.sandbox] pids must be a positive integer (line 2)");
  EXPECT_EQ(lines[1],
            "config.toml: [taskcell] engine must be \"auto\", \"docker\", \"podman\" or "
            "\"native\" (line 5)");
  EXPECT_EQ(lines[2], "warning config.toml: account `a` cannot be used: it has no secret");
  EXPECT_EQ(lines[3],
            "warning config.toml: [container.sandbox] when_unavailable has an unknown value (line "
            "3): \"fail\" applies");
  EXPECT_TRUE(lines[4].starts_with(
      "warning config.toml: `memory_bytes` under [other] (line 9) has no effect"))
      << lines[4];
  EXPECT_TRUE(lines[5].starts_with("agents/a1/agent.toml: [agent] name must be"));
  EXPECT_TRUE(lines[5].ends_with("(line 2)")) << lines[5];
  EXPECT_TRUE(lines[6].starts_with("agents/a2/agent.toml: a2/agent.toml is not valid TOML: line"))
      << lines[6];
}

TEST_F(CheckConfigurationTest, AnAgentThatAsksForMoreThanTheSectionGivesIsNamed) {
  Put("config.toml", "[container.sandbox]\npids = 64\n");
  Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n[taskcell.limits]\npids = 65\n");
  Put("agents/a2/agent.toml", "[agent]\nname = \"a2\"\n[taskcell.limits]\npids = 64\n");
  EXPECT_EQ(Check(),
            std::vector<std::string>{"agents/a1/agent.toml: [taskcell.limits] pids (65) may not be "
                                     "above [container.sandbox] pids (64)"});
}

TEST_F(CheckConfigurationTest, TwoAgentsOrAccountsOfOneNameAreWarnedOf) {
  Put("config.toml",
      "[[accounts]]\nid = \"a\"\napi_key = \"1\"\n[[accounts]]\nid = \"a\"\napi_key = \"2\"\n");
  Put("agents/x/agent.toml", "[agent]\nname = \"same\"\n");
  Put("agents/y/agent.toml", "[agent]\nname = \"same\"\n");
  EXPECT_EQ(Check(),
            (std::vector<std::string>{
                "warning config.toml: account `a` is there twice: give each account an id of its "
                "own",
                "warning agents/y/agent.toml: agents/x is agent `same` as well; the "
                "directory of that name is used, else the last"}));
}

TEST_F(CheckConfigurationTest, AFileThatIsNoTomlOrMissingIsToldAndTheAgentsAreStillRead) {
  Put("agents/a2/agent.toml", "[agent\n");
  ASSERT_EQ(Check().size(), 2U);
  EXPECT_TRUE(Check()[0].starts_with("warning config.toml: there is none"));
  Put("config.toml", "pids = = 1\n");
  ASSERT_EQ(Check().size(), 2U);
  EXPECT_TRUE(Check()[0].starts_with("config.toml: config.toml is not valid TOML: line 1"));
}

}  // namespace
}  // namespace taskcell::gateway
