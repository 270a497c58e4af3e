// What `taskcell run` answers, byte for byte: the two replies of the guide, and all beside them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "gateway/ledger/ledger.h"
#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "tests/support/fixture.h"
#include "tests/support/own_network.h"
#include "tests/support/temp_directory.h"

namespace taskcell::test {
namespace {

using gateway::Ledger;
using gateway::TaskRow;
using Json = nlohmann::json;

class AnswersTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_ENTER_OWN_NETWORK();
    home_.Put("config.toml", "[taskcell]\nengine = \"native\"\n");
    home_.Put("agents/a1/agent.toml",
              "[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n[container]\n"
              "sandbox_enabled = true\nnetwork_access = false\n");
  }
  Outcome RunFor(const std::string& agent) const {
    return test::Run(
        {Program("taskcell"), "run", agent, "Do it.", "--json", "--home", home_.path()});
  }
  Json ShownAnswer(const std::string& task) const {
    const Outcome shown =
        test::Run({Program("taskcell"), "show", task, "--json", "--home", home_.path()});
    EXPECT_EQ(shown.status, 0) << shown.err;
    return Json::parse(shown.out)["answer"];
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

// The same as the API's (ServiceTest): also of a task whose process left no answer behind.
TEST_F(AnswersTest, ATaskThatWasInterruptedIsShownWithTheReplyOfOne) {
  const std::string id(32, 'c');
  {
    UniqueFd home(::open(home_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    Result<Ledger> ledger = Ledger::Open(home.get(), home_.path());
    ASSERT_TRUE(ledger.ok()) << ledger.error().text;
    TaskRow task;
    task.id = id;
    task.agent = "a1";
    task.kind = "bus";
    task.owner = "1 1 of-another-boot";
    ASSERT_TRUE(ledger->Start(task).ok());
    ASSERT_EQ(ShownAnswer(id), Json());
    ASSERT_EQ(ledger->Interrupt(1)->size(), 1U);
  }
  const Json answer = ShownAnswer(id);
  EXPECT_EQ(answer["code"], "interrupted") << answer;
  EXPECT_EQ(answer["task_id"], id);
  EXPECT_EQ(answer["delegation_reply"],
            Text("⚠️ 子任務失敗（任務沙箱，interrupted）：",
                 gateway::kInterruptedMessage));
}

}  // namespace
}  // namespace taskcell::test
