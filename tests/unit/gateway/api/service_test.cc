#include "gateway/api/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "gateway/ledger/owner.h"
#include "gateway/task/answer_json.h"
#include "gateway/task/prompt.h"
#include "tests/unit/gateway/api/scripted_service.h"

namespace taskcell::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ServiceTest : public ScriptedService {};

TEST_F(ServiceTest, NoMoreRunAtOnceThanMayAndAgentsTakeTurns) {
  for (const char* prompt : {"a1", "a2", "a3"}) Submit("a", prompt);
  const std::string last = Submit("b", "b1");
  ASSERT_TRUE(DispatchUntil(2, [this] { return Started().size() == 2; }));
  EXPECT_EQ(service_->Running(), 2U);
  EXPECT_EQ(service_->Measure()->waiting, 2);
  EXPECT_THAT(Started(), testing::UnorderedElementsAre("a1", "b1"));
  ReleaseAll();
  ASSERT_TRUE(
      DispatchUntil(2, [this] { return Started().size() == 4 && service_->Running() == 0; }));
  EXPECT_LE(Most(), 2);
  EXPECT_EQ(StateOf(last), TaskState::kDone);
}

TEST_F(ServiceTest, TheAnswerIsThereForWhoeverComesLater) {
  const std::string id = Submit("a", "question");
  ReleaseAll();
  ASSERT_TRUE(DispatchUntil(4, [&] { return StateOf(id) == TaskState::kDone; }));
  ASSERT_TRUE(DispatchUntil(4, [&] { return service_->Running() == 0; }));
  const TaskAnswer answer = ParseAnswer(service_->Find(id).value()->answer).value();
  EXPECT_EQ(answer.reply, "reply to question");
  EXPECT_EQ(answer.task_id, id);
  EXPECT_TRUE(answer.by_gateway);
  EXPECT_THAT(service_->Log(id).value(), HasSubstr("Z begun\n"));
  EXPECT_THAT(service_->Log(id).value(), HasSubstr("Z done\n"));
}

TEST_F(ServiceTest, AWaitingTaskIsCancelledAtOnceAndARunningOneIsAskedTo) {
  const std::string first = Submit("a", "one");
  const std::string second = Submit("a", "two");
  ASSERT_TRUE(DispatchUntil(1, [this] { return Started().size() == 1; }));
  EXPECT_EQ(service_->Cancel(second).value(), TaskState::kAccepted);
  EXPECT_EQ(StateOf(second), TaskState::kCancelled);
  EXPECT_EQ(service_->Cancel(first).value(), TaskState::kRunning);
  ASSERT_TRUE(DispatchUntil(1, [&] { return StateOf(first) == TaskState::kCancelled; }));
  EXPECT_EQ(service_->Cancel(first).value(), TaskState::kCancelled);
  EXPECT_FALSE(service_->Cancel("none").value().has_value());
  EXPECT_THAT(Started(), ElementsAre("one"));
  EXPECT_EQ(ParseAnswer(service_->Find(second).value()->answer)->code, "stopped");
}

TEST_F(ServiceTest, AWatchTellsEachLineOnceAndTheAnswerAtTheEnd) {
  const std::string id = Submit("a", "one");
  std::unique_ptr<TaskWatch> watch = service_->Watch(id);
  EXPECT_EQ(watch->Next(std::chrono::seconds(5))->state, TaskState::kAccepted);
  EXPECT_FALSE(watch->Next(std::chrono::milliseconds(1))->is_over) << "nothing happened";
  ASSERT_TRUE(DispatchUntil(1, [this] { return Started().size() == 1; }));
  std::string lines;
  TaskWatch::News news;
  ReleaseAll();
  while (!news.is_over) {
    news = watch->Next(std::chrono::seconds(5)).value();
    lines += news.lines;
  }
  EXPECT_EQ(news.state, TaskState::kDone);
  EXPECT_EQ(ParseAnswer(news.answer)->reply, "reply to one");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;
  EXPECT_TRUE(service_->Watch(id)->Next(std::chrono::seconds(5))->is_over) << "long over";
  EXPECT_EQ(service_->Watch("none")->Next(std::chrono::seconds(5)).error().code, "task_not_found");
}

TEST_F(ServiceTest, AWatchEndsWithoutAnAnswerWhenTheGatewayDoes) {
  std::unique_ptr<TaskWatch> watch = service_->Watch(Submit("a", "one"));
  EXPECT_FALSE(watch->Next(std::chrono::seconds(5))->is_over);
  std::thread ending([this] { service_->EndWatches(); });
  const TaskWatch::News news = watch->Next(std::chrono::seconds(60)).value();
  ending.join();
  EXPECT_TRUE(news.is_over);
  EXPECT_EQ(news.answer, "");
}

TEST_F(ServiceTest, TheEndIsWaitedForUntilNobodyIsLeftToBeTold) {
  std::unique_ptr<TaskWatch> watch = service_->Watch(Submit("a", "one"));
  service_->EndWatches();
  EXPECT_FALSE(service_->AwaitWatches(std::chrono::milliseconds(1)));
  std::thread told([&watch] { watch.reset(); });
  EXPECT_TRUE(service_->AwaitWatches(std::chrono::seconds(60)));
  told.join();
}

TEST_F(ServiceTest, OneThatStopsTakesNothingInAndWhatWaitsIsThereForTheNext) {
  const std::string first = Submit("a", "one");
  const std::string second = Submit("a", "two");
  ASSERT_TRUE(DispatchUntil(1, [this] { return Started().size() == 1; }));
  service_->Stop();
  EXPECT_EQ(service_->Submit({"a", TaskKind::kBus, "three"}).error().code, "gateway_stopping");
  ReleaseAll();
  ASSERT_TRUE(DispatchUntil(4, [this] { return service_->Running() == 0; }));
  EXPECT_EQ(StateOf(second), TaskState::kAccepted);
  service_.reset();
  Open();
  ASSERT_TRUE(DispatchUntil(4, [&] { return StateOf(second) == TaskState::kDone; }));
  EXPECT_THAT(Started(), ElementsAre("one", "two"));
}

TEST_F(ServiceTest, WhatADeadGatewayWasRunningIsInterruptedAndSaysSo) {
  const std::string id = Submit("a", "one");
  {
    Ledger ledger = Ledger::Open(home_->fd.get(), home_->path).value();
    std::string gone = OwnerOfThisProcess().value();
    gone.replace(gone.find(' ') + 1, 1, "9999");
    ASSERT_TRUE(ledger.Claim(gone, 1).value().has_value());
  }
  service_.reset();
  Open();
  const TaskView view = service_->Find(id).value().value();
  EXPECT_EQ(view.row.state, TaskState::kInterrupted);
  const TaskAnswer answer = ParseAnswer(view.answer).value();
  EXPECT_EQ(answer.code, "interrupted");
  EXPECT_THAT(DelegationReply(answer), HasSubstr("whether it had an effect is not known"));
  ASSERT_TRUE(DispatchUntil(4, [this] { return service_->Running() == 0; }));
  EXPECT_TRUE(Started().empty()) << "nothing runs twice";
}

TEST_F(ServiceTest, AnEndThatCannotBeWrittenIsWrittenLaterAndToldAtOnce) {
  const std::string id = Submit("a", "one");
  std::unique_ptr<TaskWatch> watch = service_->Watch(id);
  ASSERT_TRUE(DispatchUntil(1, [this] { return Started().size() == 1; }));
  {
    // Another process keeps the ledger to itself, longer than is waited for.
    Database other = Database::Open(home_->path + "/" + kLedgerFile).value();
    ASSERT_TRUE(other.Execute("BEGIN IMMEDIATE").ok());
    ReleaseAll();
    TaskWatch::News news;
    while (!news.is_over) news = watch->Next(std::chrono::seconds(5)).value();
    EXPECT_EQ(ParseAnswer(news.answer)->reply, "reply to one");
    EXPECT_EQ(service_->Running(), 1U) << "its end is not in the ledger";
    ASSERT_TRUE(other.Execute("ROLLBACK").ok());
  }
  ASSERT_TRUE(DispatchUntil(1, [this] { return service_->Running() == 0; }));
  EXPECT_EQ(StateOf(id), TaskState::kDone);
}

TEST_F(ServiceTest, WhatElseIsAskedOfATaskReachesItsRun) {
  ASSERT_TRUE(service_->Submit({"a", TaskKind::kGoalRound, "one", "planner"}).ok());
  ASSERT_TRUE(service_->Submit({"a", TaskKind::kCron, "two", "", true}).ok());
  ReleaseAll();
  ASSERT_TRUE(
      DispatchUntil(1, [this] { return Started().size() == 2 && service_->Running() == 0; }));
  ASSERT_EQ(requests_.size(), 2U);
  EXPECT_EQ(requests_[0].kind, TaskKind::kGoalRound);
  EXPECT_EQ(requests_[0].team_role, "planner");
  EXPECT_FALSE(requests_[0].require_cell);
  EXPECT_EQ(requests_[1].kind, TaskKind::kCron);
  EXPECT_EQ(requests_[1].team_role, "");
  EXPECT_TRUE(requests_[1].require_cell);
}

TEST_F(ServiceTest, MailThatWakesNobodyIsAnsweredAtOnceAndStandsInNoLedger) {
  const std::optional<TaskAnswer> answer =
      service_->Skip({"sandboxed", TaskKind::kMail, "x"}).value();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code, "skipped");
  EXPECT_TRUE(answer->by_gateway);
  EXPECT_FALSE(service_->Skip({"other", TaskKind::kMail, "x"}).value().has_value());
  EXPECT_EQ(service_->Skip({"sandboxed", TaskKind::kMail, " "}).error().code, "invalid_prompt");
  EXPECT_TRUE(service_->Tasks(9).value().empty());
  service_->Stop();
  EXPECT_EQ(service_->Skip({"sandboxed", TaskKind::kMail, "x"}).error().code, "gateway_stopping");
}

TEST_F(ServiceTest, WhatCannotBeATaskIsRefusedBeforeItIsKept) {
  auto code = [this](const Submission& submission) {
    Result<std::string> id = service_->Submit(submission);
    return id.ok() ? std::string("ok") : std::string(id.error().code);
  };
  EXPECT_EQ(code({"a", TaskKind::kBus, " \n"}), "invalid_prompt");
  EXPECT_EQ(code({"a", TaskKind::kBus, std::string(kMaxPromptBytes + 1, 'x')}), "invalid_prompt");
  EXPECT_EQ(code({"", TaskKind::kBus, "x"}), "agent_not_found");
  EXPECT_EQ(code({std::string(129, 'a'), TaskKind::kBus, "x"}), "agent_not_found");
  EXPECT_EQ(code({"a", TaskKind::kGoalRound, "x", "chief"}), "unknown_role");
  EXPECT_EQ(service_->Measure()->waiting, 0);
  EXPECT_EQ(code({std::string(128, 'a'), TaskKind::kBus, std::string(kMaxPromptBytes, 'x')}), "ok");
}

}  // namespace
}  // namespace taskcell::gateway
