// The verbs of the case driver that no given case of this version uses yet: what they answer rests
// on the gateway's own code, which has tests of its own.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "launcher/base/text.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;

constexpr char kReplyEvent[] =
    R"({"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"All done"})"
    "\n";

class CaseDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    user_ = TestUser();
    TASKCELL_REQUIRE(user_.has_value(), "needs the user taskcell-test (fixture.sh up)");
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become the test user");
    TASKCELL_REQUIRE(::access(Program("taskcell-casedriver").c_str(), X_OK) == 0,
                     "needs the programs where the test user can execute them");
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
    Put("reply.jsonl", kReplyEvent);
  }
  void TearDown() override {
    if (!path_.ends_with("XXXXXX")) std::filesystem::remove_all(path_);
  }

  void Put(const std::string& name, std::string_view content) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }
  Outcome Drive(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), Program("taskcell-casedriver"));
    RunOptions options;
    options.directory = path_;
    options.environment = {"CASE_USER=taskcell-test"};
    options.input = input;
    return test::Run(arguments, options);
  }
  // What `run-cli` answers for a shell script as the program.
  Json RunCli(const std::string& script, const std::string& timeout_ms = "20000",
              const std::string& input = "") const {
    Outcome ran = Drive({"run-cli", "--timeout-ms", timeout_ms, "--", "sh", "-c", script}, input);
    EXPECT_NE(ran.out, "") << ran.err;
    return Json::parse(ran.out);
  }
  Json Classify(const Json& evidence) const {
    Outcome ran = Drive({"classify-exit", "--json"}, evidence.dump());
    EXPECT_NE(ran.out, "") << ran.err;
    return Json::parse(ran.out);
  }

  std::optional<User> user_;
  std::string path_ = "/tmp/taskcell-driver-XXXXXX";
};

TEST_F(CaseDriverTest, AStandInsReplyIsReadAndItDidNotRunOnTheHost) {
  Json answer = RunCli("[ ! -e /etc/shadow ] && cat reply.jsonl");
  EXPECT_EQ(answer["outcome"], "success") << answer;
  EXPECT_EQ(answer["reply"], "All done");
  EXPECT_EQ(answer["ran_on_host"], false);
}

TEST_F(CaseDriverTest, WhatIsLeftOfAStandInEndsWithItOrAtItsTimeLimit) {
  EXPECT_EQ(RunCli("cat reply.jsonl; sleep 1000 & exit 0")["outcome"], "success");
  Json late = RunCli("cat reply.jsonl; sleep 1000", "1000");
  EXPECT_EQ(late["outcome"], "timed_out") << late;
  EXPECT_TRUE(late["reply"].is_null());
}

TEST_F(CaseDriverTest, AStandInThatFailsOrFloodsIsJudged) {
  EXPECT_EQ(RunCli("cat reply.jsonl; kill -9 $$")["code"], "no_reply");
  EXPECT_EQ(RunCli("yes {}")["code"], "output_overflow");
  EXPECT_EQ(Json::parse(Drive({"run-cli", "--timeout-ms", "5000", "--", "/nosuch"}).out)["code"],
            "invalid_config");
}

TEST_F(CaseDriverTest, StandardInputIsTheStandInsAndEnds) {
  EXPECT_EQ(RunCli("cat", "20000", kReplyEvent)["reply"], "All done");
  EXPECT_EQ(RunCli("cat; cat reply.jsonl")["reply"], "All done");
}

TEST_F(CaseDriverTest, AnArgumentIsTakenUpToTheKernelsBoundAndNamedPastIt) {
  auto run = [this](std::size_t size) {
    Put("argument", std::string(size, 'a'));
    Outcome ran = Drive({"run-cli", "--timeout-ms", "20000", "--argument-file", "argument", "--",
                         "sh", "-c", "cat reply.jsonl; [ ${#1} -gt 1000 ]", "x"});
    return Json::parse(ran.out);
  };
  EXPECT_EQ(run(131071)["outcome"], "success");
  std::string message = run(131072)["message"];
  EXPECT_NE(message.find("128 KiB"), std::string::npos) << message;
  EXPECT_NE(message.find("standard input"), std::string::npos) << message;
}

TEST_F(CaseDriverTest, EvidenceIsClassifiedByTheGatewaysOwnOrder) {
  EXPECT_EQ(Classify({{"exit", 0}, {"stdout", kReplyEvent}})["reply"], "All done");
  EXPECT_EQ(Classify({{"exit", 1}, {"stdout", kReplyEvent}})["code"], "no_reply");
  EXPECT_EQ(Classify({{"exit", 0}, {"stdout", kReplyEvent}, {"egress", Json::object()}})["code"],
            "no_reply")
      << "a reply without any answer of the provider behind it";
  EXPECT_EQ(Classify({{"exit", 1}, {"egress", {{"auth_failures", 1}}}})["outcome"], "auth_failed");
  EXPECT_EQ(Classify({{"exit", 1}, {"egress", {{"rate_limited", 1}}}})["outcome"], "rate_limited");
  EXPECT_EQ(Classify({{"signal", 9}, {"reason", "deadline"}})["outcome"], "timed_out");
  EXPECT_EQ(Classify({{"cancelled", true}})["code"], "stopped");
  EXPECT_EQ(Classify({{"end", "gate_closed"}, {"events", false}})["code"], "result_incomplete");
  EXPECT_EQ(Classify({{"over_steps", true}, {"max_turns", 7}})["outcome"], "step_limit");
  std::string detail = Classify({{"exit", 137}, {"oom_kills", 2}})["detail"];
  EXPECT_NE(detail.find("memory limit was reached: 2"), std::string::npos) << detail;
  EXPECT_EQ(Classify({{"exit", 137}})["detail"], "no diagnostic output") << "137 alone is no proof";
}

TEST_F(CaseDriverTest, BadCommandLinesSaySo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"run-cli"},
                                             {"run-cli", "--timeout-ms", "0", "--", "true"},
                                             {"run-cli", "--timeout-ms", "1000", "--"},
                                             {"classify-exit", "--json"},
                                             {"nonsense"}}) {
    Outcome ran = Drive(arguments);
    EXPECT_EQ(ran.status, 2) << ran.out;
    EXPECT_NE(ran.err, "");
  }
  EXPECT_EQ(Drive({"sweep", "--home", "/tmp"}).status, 2);
}

}  // namespace
}  // namespace taskcell::test
