#include "gateway/runtimes/loop/run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gateway/runtimes/stream.h"
#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"

namespace taskcell::gateway::loop {
namespace {

// Runs the loop against a list of scripted answers and keeps what it asked and told.
struct Session {
  std::vector<HttpAnswer> answers;
  std::vector<std::string> requests;
  std::string events;
  uint64_t max_turns = 10;

  bool Run() {
    LoopTask task{"m", max_turns, "do it"};
    LoopPorts ports;
    ports.ask = [this](const std::string& request) -> Result<HttpAnswer> {
      requests.push_back(request);
      if (requests.size() > answers.size()) return Error(Kind::kSystem, "connection refused");
      return answers[requests.size() - 1];
    };
    ports.tell = [this](const std::string& line) -> Status {
      EXPECT_EQ(line.find('\n'), std::string::npos);
      events += line + "\n";
      return Ok();
    };
    return RunLoop(task, ports).value();
  }
  ParsedRun Parsed(int cli_exit) const {
    return ParseRun(Runtime::kOpenAiCompat, max_turns, events, "", cli_exit);
  }
  // The messages of request `number`, from 0.
  std::vector<JsonValue> Messages(std::size_t number) const {
    return ParseJson(requests.at(number))->Find("messages")->items;
  }
};

HttpAnswer Says(std::string_view text, std::string_view finish = "stop") {
  JsonText json;
  json.Open('{').Key("choices").Open('[').Open('{').Key("message").Open('{');
  json.Key("content").String(text).Close('}').Key("finish_reason").String(finish);
  json.Close('}').Close(']').Key("usage").Open('{').Key("prompt_tokens").Number(2);
  return {200, json.Key("completion_tokens").Number(1).Close('}').Close('}').text()};
}

HttpAnswer Calls(const std::vector<std::string>& arguments, std::string_view finish = "tool_calls",
                 std::string_view text = "") {
  JsonText json;
  json.Open('{').Key("choices").Open('[').Open('{').Key("message").Open('{');
  json.Key("content").String(text).Key("tool_calls").Open('[');
  for (const std::string& each : arguments) {
    json.Open('{').Key("id").String("c").Key("function").Open('{').Key("name").String("shell");
    json.Key("arguments").String(each).Close('}').Close('}');
  }
  json.Close(']').Close('}').Key("finish_reason").String(finish).Close('}').Close(']').Close('}');
  return {200, json.text()};
}

std::string Command(std::string_view command) {
  JsonText json;
  return json.Open('{').Key("command").String(command).Close('}').text();
}

TEST(RunLoopTest, ToolResultsGoBackToTheModelAndItsLastTextIsTheReply) {
  Session session;
  session.answers = {Calls({Command("echo value-$((40+2))")}), Says("It is value-42.")};
  EXPECT_TRUE(session.Run());
  ASSERT_EQ(session.requests.size(), 2U);
  EXPECT_EQ(session.Messages(1).back().String("content"), "value-42\n");
  ParsedRun run = session.Parsed(0);
  EXPECT_EQ(run.outcome, StreamOutcome::kSuccess);
  EXPECT_EQ(run.reply, "It is value-42.");
  EXPECT_EQ(run.steps, 1U);
  EXPECT_EQ(run.usage.input, 2U);
}

TEST(RunLoopTest, NoCallOfAMessageThatWasCutIsDone) {
  std::string mark = ::testing::TempDir() + "loop-cut-" + std::to_string(::getpid());
  Session session;
  session.answers = {Calls({Command("touch " + mark)}, "length"), Says("ok")};
  EXPECT_TRUE(session.Run());
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_NE(session.Messages(1).back().String("content").find("not done"), std::string::npos);
  Session control;  // the same call, not cut
  control.answers = {Calls({Command("touch " + mark)}, "stop"), Says("ok")};
  EXPECT_TRUE(control.Run());
  EXPECT_TRUE(std::filesystem::remove(mark));
}

TEST(RunLoopTest, MalformedArgumentsAreToolErrorsAndTheirNumberIsBounded) {
  Session session;
  session.answers = {Calls({"{\"command\": \"ls"}), Calls({"[]"}), Says("gave up")};
  EXPECT_TRUE(session.Run());
  EXPECT_NE(session.Messages(1).back().String("content").find("not a JSON object"),
            std::string::npos);
  Session endless;
  endless.answers.assign(9, Calls({"nonsense"}));
  EXPECT_FALSE(endless.Run());
  EXPECT_EQ(endless.requests.size(), kMaxUselessAnswers + 1U);
  Session recovering;  // one good call in between starts the count again
  for (int i = 0; i < 2; ++i) {
    recovering.answers.insert(recovering.answers.end(), kMaxUselessAnswers, Calls({"nonsense"}));
    recovering.answers.push_back(Calls({Command("true")}));
  }
  recovering.answers.push_back(Says("done"));
  EXPECT_TRUE(recovering.Run());
}

TEST(RunLoopTest, AnnouncedCallsThatDoNotComeAreAskedForInTheUsersName) {
  Session session;
  session.answers = {Says("I will look.", "tool_calls"), Says("done")};
  EXPECT_TRUE(session.Run());
  EXPECT_EQ(session.Messages(1).back().String("role"), "user");
  Session endless;
  endless.answers.assign(9, Says("", "tool_calls"));
  EXPECT_FALSE(endless.Run());
  EXPECT_EQ(endless.requests.size(), kMaxUselessAnswers + 1U);
}

TEST(RunLoopTest, AtTheStepLimitTheLastTextIsKeptAndNothingMoreIsDone) {
  std::string mark = ::testing::TempDir() + "loop-limit-" + std::to_string(::getpid());
  Session session;
  session.max_turns = 2;
  session.answers = {Calls({Command("true")}, "tool_calls", "Half of it."),
                     Calls({Command("touch " + mark)})};
  EXPECT_FALSE(session.Run());
  EXPECT_EQ(session.requests.size(), 2U);
  EXPECT_FALSE(std::filesystem::exists(mark));
  ParsedRun run = session.Parsed(1);
  EXPECT_TRUE(run.step_limit);
  EXPECT_EQ(run.reply, "Half of it.");
}

TEST(RunLoopTest, HttpErrorsEndTheRunAtOnceWithTheirCode) {
  struct Case {
    int status;
    StreamOutcome outcome;
  };
  for (const Case& each :
       {Case{400, StreamOutcome::kFailed}, Case{401, StreamOutcome::kAuthFailed},
        Case{402, StreamOutcome::kRateLimited}, Case{403, StreamOutcome::kAuthFailed},
        Case{404, StreamOutcome::kFailed}, Case{429, StreamOutcome::kRateLimited},
        Case{500, StreamOutcome::kFailed}, Case{302, StreamOutcome::kFailed}}) {
    Session session;
    session.answers.assign(5, HttpAnswer{each.status, R"({"error":{"message":"told"}})"});
    EXPECT_FALSE(session.Run());
    EXPECT_EQ(session.requests.size(), 1U) << each.status;  // never tried again
    EXPECT_EQ(session.Parsed(1).outcome, each.outcome) << each.status;
    EXPECT_NE(session.Parsed(1).detail.find("told"), std::string::npos);
  }
}

TEST(RunLoopTest, WhatIsNoReplyIsAFailure) {
  for (const HttpAnswer& answer :
       {Says(""), Says(" \n"), Says("", "length"), Says("censored", "content_filter"),
        HttpAnswer{200, "<html>"}, HttpAnswer{200, "{}"}}) {
    Session session;
    session.answers = {answer};
    EXPECT_FALSE(session.Run());
    EXPECT_EQ(session.Parsed(1).outcome, StreamOutcome::kFailed);
    EXPECT_EQ(session.Parsed(1).reply, std::nullopt);
  }
  Session gone;  // nothing answers
  EXPECT_FALSE(gone.Run());
  EXPECT_EQ(gone.Parsed(1).outcome, StreamOutcome::kFailed);
}

TEST(RunLoopTest, CallsInOneMessageAreDoneUpToTheLimitAndNotPastIt) {
  Session session;
  session.answers = {Calls(std::vector<std::string>(kMaxCallsPerAnswer + 1, Command("echo y"))),
                     Says("done")};
  EXPECT_TRUE(session.Run());
  std::vector<JsonValue> messages = session.Messages(1);
  EXPECT_EQ(messages[messages.size() - 2].String("content"), "y\n");
  EXPECT_NE(messages.back().String("content").find("not done"), std::string::npos);
}

TEST(RunLoopTest, EventsStaySmallHoweverMuchTheToolsSay) {
  Session session;
  session.max_turns = 200;
  std::string filler(2000, 'x');
  session.answers.assign(40, Calls({Command("head -c 60000 /dev/zero | tr '\\0' z; : " + filler)}));
  session.answers.push_back(Says("done"));
  EXPECT_TRUE(session.Run());
  EXPECT_LT(session.events.size(), 40U * 1024);
  EXPECT_EQ(session.Parsed(0).reply, "done");
}

}  // namespace
}  // namespace taskcell::gateway::loop
