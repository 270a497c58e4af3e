// What `taskcell run` answers, byte for byte: the two replies of the guide, and all beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "launcher/base/text.h"
#include "tests/support/fixture.h"
#include "tests/support/temp_directory.h"

namespace taskcell::test {
namespace {

class AnswersTest : public testing::Test {
 protected:
  void SetUp() override {
    home_.Put("config.toml", "[taskcell]\nengine = \"native\"\n");
    home_.Put("agents/a1/agent.toml",
              "[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n[container]\n"
              "sandbox_enabled = true\nnetwork_access = false\n");
  }
  Outcome RunFor(const std::string& agent) const {
    return test::Run(
        {Program("taskcell"), "run", agent, "Do it.", "--json", "--home", home_.path()});
  }
  static std::string Golden(const std::string& name) {
    std::ifstream in(Text(GOLDEN_ANSWERS, "/", name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TempDirectory home_{"answers"};
};

TEST_F(AnswersTest, ARefusalIsAsTheGuideHasIt) {
  const Outcome refused = RunFor("a1");
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_EQ(refused.out, Golden("refusal.json"));
  EXPECT_THAT(refused.out,
              testing::HasSubstr("\"⚠️ 子任務未執行（任務沙箱）：Task sandbox "
                                 "unavailable (network_disabled): "));
}

TEST_F(AnswersTest, AFailureIsAsTheGuideHasIt) {
  const Outcome failed = RunFor("nobody");
  EXPECT_EQ(failed.status, 2) << failed.err;
  EXPECT_EQ(failed.out, Golden("failure.json"));
  EXPECT_THAT(failed.out, testing::HasSubstr(
                              "\"⚠️ 子任務失敗（任務沙箱，agent_not_found）：the "
                              "agent is not registered"));
}

}  // namespace
}  // namespace taskcell::test
