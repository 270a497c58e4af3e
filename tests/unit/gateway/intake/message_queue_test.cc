// message_queue.db of a home, with good rows and bad ones.
#include "gateway/intake/message_queue.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/unit/gateway/intake/intake_fixture.h"

namespace taskcell::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MessageQueueTest : public IntakeFixture {};

TEST_F(MessageQueueTest, RowsBecomeTasksAndGetTheirReplies) {
  MakeQueue();
  Row("m2", "a2", "second", "a1", "2026-10-02");
  Row("m1", "a1", "first", "dashboard", "2026-10-01");
  Row("m0", "a1", "done before", "a2", "2026-09-01");
  Queue("UPDATE message_queue SET status = 'done', response = 'old' WHERE id = 'm0'");
  Row("w", "a1", "not ours", "workflow");
  Look();
  EXPECT_EQ(StateOf("m1"), "processing") << "the platform puts back what is only acked";
  EXPECT_NE(Ask("SELECT acked_at FROM message_queue WHERE id = 'm1'"), "");
  EXPECT_EQ(OpenLedger().Tasks(9)->size(), 2U);
  Look();
  EXPECT_THAT(RunAll(Reply("the reply")), ElementsAre("a1: first", "a2: second"));
  Look();
  for (const char* id : {"m1", "m2"}) {
    EXPECT_EQ(StateOf(id), "done");
    EXPECT_EQ(Ask(Text("SELECT response FROM message_queue WHERE id = '", id, "'")), "the reply");
    EXPECT_NE(Ask(Text("SELECT completed_at FROM message_queue WHERE id = '", id, "'")), "");
  }
  EXPECT_EQ(Ask("SELECT response FROM message_queue WHERE id = 'm0'"), "old");
  EXPECT_EQ(StateOf("w"), "pending");
  EXPECT_EQ(Bus(), "") << "nobody waits on a channel";
}

TEST_F(MessageQueueTest, AFailureIsInItsRowWithItsDetailAndTheRequesterIsToldWithout) {
  MakeQueue();
  Row("m1", "a1", "x");
  Queue("INSERT INTO delegation_callbacks VALUES ('m1', 'a1', 'telegram', '7', NULL, 0, '2026')");
  Look();
  TaskAnswer answer;
  answer.code = "no_reply";
  answer.message = "it ended without a reply";
  answer.detail = "what it said";
  RunAll(answer);
  Look();
  EXPECT_EQ(StateOf("m1"), "failed");
  EXPECT_EQ(Ask("SELECT error FROM message_queue"), "it ended without a reply [what it said]");
  ASSERT_EQ(Replies("m1").size(), 1U) << "whoever waits on the channel";
  EXPECT_EQ(Replies("m1")[0]["payload"],
            "⚠️ 子任務失敗（任務沙箱，no_reply）：it ended without a reply");
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM delegation_callbacks"), "1") << "the platform's to remove";
}

TEST_F(MessageQueueTest, RowsOfWorkflowsStayAndThatIsLoggedOnce) {
  MakeQueue();
  Row("w1", "a1", "a step", "workflow");
  Row("w2", "a1", "another", "workflow");
  Row("m1", "a1", "ours");
  for (int look = 0; look < 3; ++look) Look();
  EXPECT_THAT(RunAll(Reply("the reply")), ElementsAre("a1: ours"));
  for (const char* id : {"w1", "w2"}) EXPECT_EQ(StateOf(id), "pending");
  EXPECT_EQ(LogLines(), 1U) << Log();
  EXPECT_THAT(Log(), HasSubstr(" WARN message_left agent=system queue=queue reason=\"2 rows"));
}

TEST_F(MessageQueueTest, RowsThatMakeNoSenseFailByNameAndBlockNothing) {
  MakeQueue(", lane TEXT");
  Queue(
      "INSERT INTO message_queue (id, sender, target, payload, created_at) VALUES ('blob', 'a', "
      "'a1', x'00ff', '1')");
  Queue(
      "INSERT INTO message_queue (id, sender, target, payload, created_at) VALUES (x'01', 'a', "
      "'a1', 'x', '1')");
  Queue(Text("INSERT INTO message_queue (id, sender, target, payload, created_at) VALUES ('",
             std::string(257, 'i'), "', 'a', 'a1', 'x', '1')"));
  Queue(
      "INSERT INTO message_queue (id, sender, target, payload, created_at, delegation_depth) "
      "VALUES ('depth', 'a', 'a1', 'x', '1', 'much')");
  Queue(
      "INSERT INTO message_queue (id, sender, target, payload, created_at, delegation_depth) "
      "VALUES ('deep', 'a', 'a1', 'x', '1', 5)");
  Queue(
      "INSERT INTO message_queue (id, sender, target, payload, created_at) VALUES ('big', 'a', "
      "'a1', printf('%.*c', 100001, 'x'), '1')");
  Queue(
      "INSERT INTO message_queue (id, sender, target, payload, created_at) VALUES ('most', 'a', "
      "'a1', printf('%.*c', 100000, 'x'), '1')");
  Queue(
      "INSERT INTO message_queue (id, sender, target, payload, created_at, lane) VALUES "
      "('explore', 'a', 'a1', 'x', '1', 'explore')");
  Row("m1", "a1", "fine");
  Look();
  EXPECT_EQ(RunAll(Reply("done")).size(), 2U);
  Look();
  for (const auto& [id, part] :
       std::vector<std::pair<std::string, std::string>>{{"blob", "must be texts"},
                                                        {"depth", "a number from 0 to 255"},
                                                        {"deep", "depth limit (5)"},
                                                        {"big", "100001 bytes"},
                                                        {"explore", "explore_lane_unsupported"}}) {
    EXPECT_EQ(StateOf(id), "failed") << id;
    EXPECT_THAT(Ask(Text("SELECT error FROM message_queue WHERE id = '", id, "'")),
                HasSubstr(part));
  }
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM message_queue WHERE error LIKE 'its id is no text of 1 to "
                "256 bytes'"),
            "2");
  EXPECT_EQ(StateOf("m1"), "done");
  EXPECT_EQ(StateOf("most"), "done");
}

TEST_F(MessageQueueTest, ADatabaseOfUnknownShapeIsRefusedAndNamed) {
  struct Case {
    std::string sql, part;
  };
  for (const Case& row :
       {Case{"CREATE TABLE other (id TEXT)", "message_queue.db: it has no table message_queue"},
        Case{"CREATE TABLE message_queue (id TEXT PRIMARY KEY, sender TEXT, target TEXT, payload "
             "TEXT, status TEXT)",
             "its table message_queue has no column error"},
        Case{"CREATE VIEW message_queue AS SELECT 1 AS id", "it has no table message_queue"}}) {
    for (const char* end : {"", "-wal", "-shm"})
      std::filesystem::remove(directory_.At(Text("message_queue.db", end)));
    directory_.Put("message_queue.db", "");
    Queue(row.sql);
    EXPECT_THAT(Troubles(), HasSubstr(row.part)) << row.sql;
    EXPECT_EQ(Ask("PRAGMA journal_mode"), "delete") << "how it is kept is not changed";
  }
  directory_.Put("message_queue.db", std::string(4096, 'x'));
  EXPECT_THAT(Troubles(), HasSubstr("message_queue.db: file is not a database"));
  std::filesystem::remove(directory_.At("message_queue.db"));
  directory_.Link("elsewhere.db", "message_queue.db");
  EXPECT_THAT(Troubles(), HasSubstr("message_queue.db is not a regular file"));
  EXPECT_FALSE(std::filesystem::exists(directory_.At("elsewhere.db")));
}

TEST_F(MessageQueueTest, ADatabaseThatOthersHoldIsTriedAgainAndNothingRunsTwice) {
  MakeQueue();
  Row("m1", "a1", "x");
  {
    Database other = Database::OpenForeign(directory_.At("message_queue.db")).value();
    ASSERT_TRUE(other.Execute("BEGIN IMMEDIATE").ok());
    EXPECT_THAT(Troubles(), HasSubstr("message_queue.db: database is locked"));
    EXPECT_EQ(StateOf("m1"), "pending");
    ASSERT_TRUE(other.Execute("ROLLBACK").ok());
  }
  Look();
  EXPECT_EQ(StateOf("m1"), "processing");
  EXPECT_EQ(RunAll(Reply("done")).size(), 1U);
  Look();
  EXPECT_EQ(StateOf("m1"), "done");
}

TEST_F(MessageQueueTest, ARowThatIsPutBackAfterItsReplyIsNotRunAgain) {
  MakeQueue();
  Row("m1", "a1", "x");
  Look();
  EXPECT_EQ(RunAll(Reply("done")).size(), 1U);
  Look();
  Queue("UPDATE message_queue SET status = 'pending'");
  Look();
  EXPECT_EQ(RunAll(Reply("done")).size(), 0U);
  EXPECT_EQ(StateOf("m1"), "failed");
  EXPECT_THAT(Ask("SELECT error FROM message_queue"), HasSubstr("nothing is run twice"));
}

TEST_F(MessageQueueTest, MoreRowsThanOneLookTakesAreTakenByTheNext) {
  MakeQueue();
  Queue(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150) INSERT INTO "
      "message_queue (id, sender, target, payload, created_at) SELECT 'm' || i, 'a', 'a1', 'x', "
      "printf('%04d', i) FROM n");
  Look();
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM message_queue WHERE status = 'processing'"), "100");
  Look();
  EXPECT_EQ(RunAll(Reply("done")).size(), 150U);
  Look();
  Look();
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM message_queue WHERE status = 'done'"), "150");
}

TEST_F(MessageQueueTest, RepliesWaitForADatabaseThatIsGone) {
  MakeQueue();
  Row("m1", "a1", "x");
  Look();
  EXPECT_EQ(RunAll(Reply("done")).size(), 1U);
  std::filesystem::rename(directory_.At("message_queue.db"), directory_.At("away"));
  EXPECT_THAT(Troubles(), HasSubstr("message_queue.db is gone, and replies wait"));
  std::filesystem::rename(directory_.At("away"), directory_.At("message_queue.db"));
  Look();
  EXPECT_EQ(StateOf("m1"), "done");
}

}  // namespace
}  // namespace taskcell::gateway
