// The tasks of a ledger that wait for their turn.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "gateway/ledger/interrupt.h"
#include "gateway/ledger/ledger.h"
#include "gateway/ledger/owner.h"
#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

class WaitingTasksTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    home_ = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
  }
  void TearDown() override { fs::remove_all(path_); }

  Result<Ledger> Open() { return Ledger::Open(home_.get(), path_); }
  static TaskRow Row(const std::string& id, const std::string& agent) {
    TaskRow row;
    row.id = id;
    row.agent = agent;
    row.kind = "bus";
    row.accepted_ms = 5;
    return row;
  }
  static std::string Next(Ledger& ledger) {
    std::optional<ClaimedTask> task = ledger.Claim("me", 9).value();
    return task.has_value() ? task->row.id : "";
  }
  // Whether any file of the home holds the text.
  bool Holds(std::string_view text) const {
    for (const auto& entry : fs::directory_iterator(path_)) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      if (bytes.find(text) != std::string::npos) return true;
    }
    return false;
  }

  std::string path_ = "/tmp/taskcell-waiting-XXXXXX";
  UniqueFd home_;
};

TEST_F(WaitingTasksTest, AnAcceptedTaskIsClaimedOnceWithItsPrompt) {
  Ledger ledger = Open().value();
  ASSERT_TRUE(ledger.Accept(Row("t1", "a"), "do it").ok());
  EXPECT_EQ(ledger.Task("t1").value()->state, TaskState::kAccepted);
  EXPECT_FALSE(ledger.Accept(Row("t1", "a"), "again").ok()) << "no id twice";
  EXPECT_EQ(ledger.Waiting().value(), 1);
  std::optional<ClaimedTask> task = ledger.Claim("me", 9).value();
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->row.id, "t1");
  EXPECT_EQ(task->prompt, "do it");
  EXPECT_EQ(task->terms.team_role, "");
  EXPECT_FALSE(task->terms.require_cell);
  const TaskRow row = ledger.Task("t1").value().value();
  EXPECT_EQ(row.state, TaskState::kRunning);
  EXPECT_EQ(row.owner, "me");
  EXPECT_EQ(row.started_ms, 9);
  EXPECT_FALSE(ledger.Claim("me", 10).value().has_value());
}

TEST_F(WaitingTasksTest, WhatElseWasAskedOfATaskWaitsWithIt) {
  Ledger ledger = Open().value();
  ASSERT_TRUE(ledger.Accept(Row("t1", "a"), "x", {"planner", false}).ok());
  ASSERT_TRUE(ledger.Accept(Row("t2", "a"), "x", {"", true}).ok());
  const ClaimedTask first = ledger.Claim("me", 9).value().value();
  EXPECT_EQ(first.terms.team_role, "planner");
  EXPECT_FALSE(first.terms.require_cell);
  const ClaimedTask second = ledger.Claim("me", 9).value().value();
  EXPECT_EQ(second.terms.team_role, "");
  EXPECT_TRUE(second.terms.require_cell);
}

TEST_F(WaitingTasksTest, AgentsTakeTurnsAndEachKeepsItsOrder) {
  Ledger ledger = Open().value();
  for (const char* id : {"a1", "a2", "a3", "a4"})
    ASSERT_TRUE(ledger.Accept(Row(id, "a"), "x").ok());
  for (const char* id : {"b1", "b2"}) ASSERT_TRUE(ledger.Accept(Row(id, "b"), "x").ok());
  ASSERT_TRUE(ledger.Accept(Row("c1", "c"), "x").ok());
  std::string order;
  for (std::string id = Next(ledger); !id.empty(); id = Next(ledger)) order += Text(id, " ");
  EXPECT_EQ(order, "a1 b1 c1 a2 b2 a3 a4 ");
  // One that had a turn long ago goes before one that just had its turn.
  ASSERT_TRUE(ledger.Accept(Row("a5", "a"), "x").ok());
  ASSERT_TRUE(ledger.Accept(Row("c2", "c"), "x").ok());
  EXPECT_EQ(Next(ledger), "c2");
}

TEST_F(WaitingTasksTest, ManyClaimersGetEachTaskOnce) {
  constexpr int kTasks = 60;
  constexpr int kClaimers = 4;
  {
    Ledger ledger = Open().value();
    for (int i = 0; i < kTasks; ++i)
      ASSERT_TRUE(ledger.Accept(Row(Text("t", i), Text("a", i % 3)), "x").ok());
  }
  std::vector<std::vector<std::string>> got(kClaimers);
  std::vector<std::thread> claimers;
  claimers.reserve(kClaimers);
  for (int i = 0; i < kClaimers; ++i) {
    claimers.emplace_back([this, &mine = got[static_cast<std::size_t>(i)]] {
      Ledger ledger = Open().value();
      for (std::string id = Next(ledger); !id.empty(); id = Next(ledger)) mine.push_back(id);
    });
  }
  std::set<std::string> all;
  std::size_t sum = 0;
  for (int i = 0; i < kClaimers; ++i) {
    claimers[static_cast<std::size_t>(i)].join();
    sum += got[static_cast<std::size_t>(i)].size();
    all.insert(got[static_cast<std::size_t>(i)].begin(), got[static_cast<std::size_t>(i)].end());
  }
  EXPECT_EQ(sum, kTasks);
  EXPECT_EQ(all.size(), kTasks);
}

TEST_F(WaitingTasksTest, TheQueueIsBoundedAndSaysSo) {
  Ledger ledger = Open().value();
  {
    Database database = Database::Open(path_ + "/taskcell.db").value();
    ASSERT_TRUE(
        database
            .Execute(Text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                          "WHERE i < ",
                          kMaxWaitingTasks - 1,
                          ") INSERT INTO tasks SELECT 'q' || i, 'a', 'bus', '', 'accepted', "
                          "'', '', 1, 0, 0 FROM n"))
            .ok());
  }
  EXPECT_TRUE(ledger.Accept(Row("last", "a"), "x").ok());
  Status over = ledger.Accept(Row("over", "a"), "x");
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, "queue_full");
  EXPECT_NE(over.error().text.find("10000 tasks wait"), std::string::npos) << over.error().text;
  EXPECT_FALSE(ledger.Task("over").value().has_value());
  ASSERT_TRUE(ledger.CancelWaiting("last", 9).value());
  EXPECT_TRUE(ledger.Accept(Row("over", "a"), "x").ok());
}

TEST_F(WaitingTasksTest, OnlyWhatWaitsIsCancelledHere) {
  Ledger ledger = Open().value();
  ASSERT_TRUE(ledger.Accept(Row("t1", "a"), "x").ok());
  ASSERT_TRUE(ledger.Accept(Row("t2", "a"), "x").ok());
  EXPECT_EQ(Next(ledger), "t1");
  EXPECT_FALSE(ledger.CancelWaiting("t1", 9).value()) << "it runs";
  EXPECT_FALSE(ledger.CancelWaiting("t3", 9).value()) << "there is none";
  EXPECT_TRUE(ledger.CancelWaiting("t2", 9).value());
  EXPECT_FALSE(ledger.CancelWaiting("t2", 9).value());
  EXPECT_EQ(ledger.Task("t2").value()->state, TaskState::kCancelled);
  EXPECT_EQ(Next(ledger), "");
}

TEST_F(WaitingTasksTest, ThePromptIsGoneWithTheTaskAndTheAnswerIsKept) {
  constexpr char kPrompt[] = "a prompt that nobody else has";
  {
    Ledger ledger = Open().value();
    ASSERT_TRUE(ledger.Accept(Row("t1", "a"), kPrompt).ok());
    ASSERT_TRUE(ledger.Accept(Row("t2", "a"), kPrompt).ok());
    EXPECT_TRUE(Holds(kPrompt)) << "else this test sees nothing";
    EXPECT_EQ(Next(ledger), "t1");
    TaskEnd end;
    end.state = TaskState::kDone;
    end.code = "ok";
    end.ended_ms = 12;
    end.answer = "{\"reply\":\"done\"}";
    end.log = "one\ntwo\n";
    ASSERT_TRUE(ledger.Finish("t1", end).ok());
    ASSERT_TRUE(ledger.CancelWaiting("t2", 9).value());
    EXPECT_EQ(ledger.Answer("t1").value(), end.answer);
    EXPECT_EQ(ledger.Log("t1").value(), end.log);
    EXPECT_EQ(ledger.Answer("t2").value(), "");
  }
  EXPECT_FALSE(Holds(kPrompt)) << "not even in the log beside it, once it is closed";
}

TEST_F(WaitingTasksTest, WhatAProcessThatIsGoneWasRunningIsInterruptedAndWhatWaitsStays) {
  Ledger ledger = Open().value();
  for (const char* id : {"t1", "t2", "t3"}) ASSERT_TRUE(ledger.Accept(Row(id, "a"), "x").ok());
  const std::string mine = OwnerOfThisProcess().value();
  std::string gone = mine;
  gone.replace(gone.find(' ') + 1, 1, "9999");  // another start time: nobody has both
  ASSERT_TRUE(ledger.Claim(gone, 9).value().has_value());
  ASSERT_TRUE(ledger.Claim(mine, 9).value().has_value());
  EXPECT_EQ(ledger.Interrupt(20, true).value().at(0).id, "t1");
  EXPECT_EQ(ledger.Task("t1").value()->state, TaskState::kRunning);
  EXPECT_EQ(ledger.Interrupt(20).value().at(0).id, "t1");
  const TaskRow row = ledger.Task("t1").value().value();
  EXPECT_EQ(row.state, TaskState::kInterrupted);
  EXPECT_EQ(row.ended_ms, 20);
  EXPECT_NE(row.message.find("not known"), std::string::npos);
  EXPECT_EQ(ledger.Task("t2").value()->state, TaskState::kRunning);
  EXPECT_EQ(ledger.Task("t3").value()->state, TaskState::kAccepted);
  EXPECT_TRUE(ledger.Interrupt(21).value().empty());
}

TEST_F(WaitingTasksTest, AnInterruptedTaskHasOneLineInTheLog) {
  Ledger ledger = Open().value();
  ASSERT_TRUE(ledger.Accept(Row("t1", "scout"), "x").ok());
  ASSERT_TRUE(ledger.Claim("1 1 another-boot", 9).value().has_value());
  for (int time = 0; time < 2; ++time)
    EXPECT_EQ(EndInterrupted(ledger, home_.get(), 20).value().size(), time == 0 ? 1U : 0U);
  std::string log;
  for (const auto& entry : fs::directory_iterator(path_ + "/logs")) {
    std::ifstream in(entry.path());
    log.append(std::istreambuf_iterator<char>(in), {});
  }
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_NE(log.find("WARN task_failed agent=scout code=interrupted"), std::string::npos) << log;
}

TEST_F(WaitingTasksTest, AnotherProcessSeesWhatIsWrittenHoweverOftenThisOneOpensIt) {
  Ledger ledger = Open().value();
  ASSERT_TRUE(ledger.Accept(Row("t1", "a"), "x").ok());
  ASSERT_TRUE(Open().ok()) << "and closed again";
  auto waiting_elsewhere = [this] {
    return test::InChild([this] { return static_cast<int>(Open().value().Waiting().value()); });
  };
  EXPECT_EQ(waiting_elsewhere(), 1);
  ASSERT_TRUE(ledger.Accept(Row("t2", "a"), "x").ok());
  EXPECT_EQ(waiting_elsewhere(), 2) << "the other one has not taken the log away";
}

TEST_F(WaitingTasksTest, ALedgerOfTheFirstVersionIsTakenOver) {
  ASSERT_TRUE(Open().ok());
  {
    Database database = Database::Open(path_ + "/taskcell.db").value();
    for (const char* statement :
         {"INSERT INTO tasks VALUES ('old', 'a', 'run', 'o', 'done', 'ok', '', 1, 2, 3)",
          "DROP TABLE spending", "DROP TABLE chain", "DROP TABLE intake", "DROP INDEX waiting",
          "DROP TABLE turns", "DROP TABLE answers", "DROP TABLE prompts",
          "PRAGMA user_version = 1"})
      ASSERT_TRUE(database.Execute(statement).ok()) << statement;
  }
  Ledger ledger = Open().value();
  EXPECT_EQ(ledger.Task("old").value()->state, TaskState::kDone);
  EXPECT_TRUE(ledger.Accept(Row("t1", "a"), "x").ok());
}

TEST_F(WaitingTasksTest, WhatWaitsInALedgerOfTheSecondVersionStillDoes) {
  ASSERT_TRUE(Open().value().Accept(Row("t1", "a"), "do it", {"planner", true}).ok());
  {
    Database database = Database::Open(path_ + "/taskcell.db").value();
    for (const char* statement :
         {"DROP TABLE spending", "DROP TABLE chain", "DROP TABLE intake",
          "ALTER TABLE prompts DROP COLUMN team_role",
          "ALTER TABLE prompts DROP COLUMN require_cell", "PRAGMA user_version = 2"})
      ASSERT_TRUE(database.Execute(statement).ok()) << statement;
  }
  const ClaimedTask task = Open().value().Claim("me", 9).value().value();
  EXPECT_EQ(task.prompt, "do it");
  EXPECT_EQ(task.terms.team_role, "") << "the second version knew of none";
  EXPECT_FALSE(task.terms.require_cell);
}

}  // namespace
}  // namespace taskcell::gateway
