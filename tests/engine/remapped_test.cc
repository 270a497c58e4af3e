// An engine that maps the ids of its containers (userns-remap, fixture.sh with-remap).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/script_fixture.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

class RemappedEngineTest : public ScriptFixture {};

TEST_F(RemappedEngineTest, IsRefusedWithTheCauseBeforeACellIsMade) {
  const Json answer = RunJson("bash", "echo here");
  EXPECT_EQ(answer["code"], "runtime_unhealthy") << answer;
  EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr("(userns-remap)"));
  EXPECT_THAT(Client({"doctor"}).out, HasSubstr("docker_unreachable: "));
  EXPECT_EQ(Containers(), 0);
}

}  // namespace
}  // namespace taskcell::test
