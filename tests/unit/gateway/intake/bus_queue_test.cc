// bus_queue.jsonl of a home, with good lines and bad ones.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <filesystem>
#include <thread>

#include "gateway/ledger/lock_file.h"
#include "launcher/sys/file.h"
#include "tests/unit/gateway/intake/intake_fixture.h"

namespace taskcell::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BusQueueTest : public IntakeFixture {};

TEST_F(BusQueueTest, MessagesBecomeTasksAndEverythingElseStaysAsItIs) {
  const std::string response = "{\"type\":\"agent_response\",\"message_id\":\"r\",\"x\": 1}\n";
  const std::string notice = "{\"type\":\"proactive_notification\",\"agent_id\":\"a1\"}\n";
  const std::string broken = "{\"type\":\"agent_message\",\n";
  std::string text = Message("m1", "a1", "one") + response + Message("m2", "a2", "other");
  for (int i = 2; i <= 6; ++i) text += Message(Text("n", i), "a1", Text("more ", i));
  directory_.Put(kBus, text + "\n" + notice + broken);
  Look();
  EXPECT_EQ(Bus(), response + notice + broken);
  EXPECT_THAT(
      RunAll(Reply("done")),
      ElementsAre("a1: [Message 1] one\n\n---\n\n[Message 2] more 2\n\n---\n\n[Message 3] more 3"
                  "\n\n---\n\n[Message 4] more 4\n\n---\n\n[Message 5] more 5",
                  "a2: other", "a1: more 6"));
  EXPECT_FALSE(std::filesystem::exists(directory_.At("bus_queue.jsonl.tmp")));
}

TEST_F(BusQueueTest, EachMessageGetsItsReplyExactlyOnce) {
  directory_.Put(kBus, Message("m1", "a1", "one", {{"origin_agent", "o"}, {"turn_id", "t"}}) +
                           Message("m2", "a1", "two"));
  Look();
  EXPECT_EQ(Bus(), "");
  Look();
  EXPECT_EQ(Bus(), "") << "it has not run yet";
  EXPECT_EQ(RunAll(Reply("the reply")).size(), 1U);
  Look(false);
  for (const char* id : {"m1", "m2"}) {
    ASSERT_EQ(Replies(id).size(), 1U) << Bus();
    EXPECT_EQ(Replies(id)[0]["payload"], "the reply");
    EXPECT_EQ(Replies(id)[0]["agent_id"], "a1");
  }
  EXPECT_EQ(Replies("m1")[0]["origin_agent"], "o");
  EXPECT_EQ(Replies("m1")[0]["turn_id"], "t");
  const std::string after = Bus();
  Restart();
  Look();
  EXPECT_EQ(Bus(), after);
}

TEST_F(BusQueueTest, AFailureIsRepliedInTheGuidesWords) {
  struct Case {
    std::string code, message, reply;
  };
  for (const Case& row :
       {Case{"image_missing", "Task sandbox unavailable (image_missing): pull it",
             "⚠️ 子任務未執行（任務沙箱）：Task sandbox unavailable "
             "(image_missing): "
             "pull "
             "it"},
        Case{"step_limit", "too many",
             "⚠️ 子任務失敗（任務沙箱，step_limit）：too many"}}) {
    directory_.Put(kBus, Message(row.code, "a1", "x"));
    Look();
    TaskAnswer answer;
    answer.code = row.code;
    answer.message = row.message;
    answer.detail = "what the program said";
    EXPECT_EQ(RunAll(answer).size(), 1U);
    Look();
    ASSERT_EQ(Replies(row.code).size(), 1U);
    EXPECT_EQ(Replies(row.code)[0]["payload"], row.reply);
    EXPECT_THAT(Bus(), testing::Not(HasSubstr("what the program said")));
  }
}

TEST_F(BusQueueTest, ATaskThatNeverAnsweredIsRepliedToo) {
  directory_.Put(kBus, Message("m1", "a1", "x") + Message("m2", "a2", "x"));
  Look();
  Ledger ledger = OpenLedger();
  const std::vector<TaskRow> tasks = ledger.Tasks(9).value();
  const auto first = std::find_if(tasks.begin(), tasks.end(),
                                  [](const TaskRow& task) { return task.agent == "a1"; });
  ASSERT_NE(first, tasks.end());
  ASSERT_TRUE(ledger.CancelWaiting(first->id, 9).value());
  ASSERT_TRUE(ledger.Claim("0 0 gone", 9).value().has_value());
  ASSERT_EQ(ledger.Interrupt(10).value().size(), 1U);
  Look();
  ASSERT_EQ(Replies("m1").size(), 1U);
  EXPECT_THAT(Replies("m1")[0]["payload"], HasSubstr("cancelled before it began"));
  ASSERT_EQ(Replies("m2").size(), 1U);
  EXPECT_THAT(Replies("m2")[0]["payload"], HasSubstr("whether it had an effect is not known"));
}

TEST_F(BusQueueTest, WhatIsNoTaskIsRepliedAtOnceAndLoggedOnce) {
  directory_.Put(kBus, Message("big", "a1", std::string(kMaxPayloadBytes + 1, 'x')) +
                           Message("deep", "a1", "x", {{"delegation_depth", 5}}) +
                           Message("nobody", "", "x"));
  Look();
  EXPECT_THAT(RunAll(Reply("never")), ElementsAre());
  for (const auto& [id, part] : std::vector<std::pair<std::string, std::string>>{
           {"big", "100001 bytes"}, {"deep", "depth limit (5)"}, {"nobody", "for no agent"}}) {
    ASSERT_EQ(Replies(id).size(), 1U) << id;
    EXPECT_THAT(Replies(id)[0]["payload"], HasSubstr(part));
    EXPECT_THAT(Replies(id)[0]["payload"], HasSubstr("⚠️ 子任務處理失敗："));
    EXPECT_THAT(Log(), HasSubstr(Text(" message=", id, " ")));
  }
  EXPECT_EQ(LogLines(), 3U);
  Look();
  EXPECT_EQ(LogLines(), 3U);
}

TEST_F(BusQueueTest, ALineThatMakesNoSenseBlocksNothingAndIsToldOnce) {
  const std::string broken = "\xff{\n";
  directory_.Put(kBus, broken + Message("m1", "a1", "x") + "{\"type\":\"agent_message\"}\n");
  Look();
  EXPECT_EQ(RunAll(Reply("done")).size(), 1U);
  Look();
  directory_.Put(kBus, Bus() + Message("m2", "a1", "x"));
  Look();
  EXPECT_EQ(RunAll(Reply("done")).size(), 1U);
  EXPECT_EQ(LogLines(), 2U) << Log();
  EXPECT_THAT(Log(), HasSubstr("`message_id` is missing"));
  EXPECT_TRUE(Bus().starts_with(broken));
}

TEST_F(BusQueueTest, AnIdThatWasThereBeforeIsNotRunAgain) {
  directory_.Put(kBus, Message("m1", "a1", "x") + Message("m1", "a1", "again"));
  Look();
  EXPECT_THAT(RunAll(Reply("done")), ElementsAre("a1: x"));
  Look();
  directory_.Put(kBus, Bus() + Message("m1", "a1", "and again"));
  Look();
  EXPECT_THAT(RunAll(Reply("done")), ElementsAre());
  EXPECT_EQ(Replies("m1").size(), 1U);
  EXPECT_THAT(Log(), HasSubstr(" WARN message_repeated agent=a1 "));
}

TEST_F(BusQueueTest, AHalfLineIsLeftUntilItIsWhole) {
  const std::string line = Message("m1", "a1", "one");
  directory_.Put(kBus, Message("m0", "a2", "x") + line.substr(0, 30));
  Look();
  EXPECT_EQ(Bus(), line.substr(0, 30));
  EXPECT_THAT(RunAll(Reply("done")), ElementsAre("a2: x"));
  Look();
  EXPECT_EQ(LogLines(), 0U) << "it is not broken";
  EXPECT_TRUE(Bus().starts_with(line.substr(0, 30) + "\n")) << "a reply begins its own line";
  directory_.Put(kBus, line.substr(0, line.size() - 1));
  Look();
  EXPECT_THAT(RunAll(Reply("done")), ElementsAre("a1: one")) << "whole, but for its newline";
}

TEST_F(BusQueueTest, WhatIsWrittenToTheFileThatWasReplacedIsNotLost) {
  directory_.Put(kBus, Message("m1", "a1", "one"));
  const UniqueFd writer = sys::Open(directory_.At(kBus), O_WRONLY | O_APPEND).value();
  Look();
  ASSERT_TRUE(sys::WriteAll(writer.get(), Message("m2", "a1", "two")).ok());
  EXPECT_EQ(Bus(), "") << "it went to the old file";
  Look();
  EXPECT_THAT(RunAll(Reply("done")), ElementsAre("a1: one", "a1: two"));
}

TEST_F(BusQueueTest, AFileThatIsTruncatedOrExchangedIsReadFromItsBeginning) {
  directory_.Put(kBus, Message("m1", "a1", std::string(500, 'x')));
  Look();
  directory_.Put(kBus, Message("m2", "a1", "two"));
  Look();
  directory_.Put("other", Message("m3", "a1", "three"));
  std::filesystem::rename(directory_.At("other"), directory_.At(kBus));
  Look();
  std::filesystem::remove(directory_.At(kBus));
  Look();
  EXPECT_EQ(RunAll(Reply("done")).size(), 3U);
  Look();
  for (const char* id : {"m1", "m2", "m3"}) EXPECT_EQ(Replies(id).size(), 1U) << id;
}

TEST_F(BusQueueTest, AWriterThatHoldsTheLockIsWaitedFor) {
  directory_.Put(kBus, Message("m1", "a1", "one"));
  std::optional<UniqueFd> lock =
      OpenLocked(home_->fd.get(), "bus_queue.jsonl.lock", std::chrono::seconds(0)).value();
  std::atomic<bool> written = false;
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    directory_.Put(kBus, Bus() + Message("m2", "a2", "two"));
    written = true;
    lock.reset();
  });
  Look();
  EXPECT_TRUE(written);
  writer.join();
  EXPECT_THAT(RunAll(Reply("done")), ElementsAre("a1: one", "a2: two"));
}

TEST_F(BusQueueTest, AFileThatCannotBeOneIsRefusedByNameAndNothingIsTaken) {
  directory_.Put(kBus, Message("m1", "a1", "one"));
  ASSERT_EQ(::truncate(directory_.At(kBus).c_str(), kMaxBusBytes + 1), 0);
  EXPECT_THAT(Troubles(), HasSubstr("bus_queue.jsonl has more than 33554432 bytes"));
  std::filesystem::remove(directory_.At(kBus));
  std::filesystem::create_directory(directory_.At(kBus));
  EXPECT_THAT(Troubles(), HasSubstr("bus_queue.jsonl is not a regular file; move it away"));
  std::filesystem::remove(directory_.At(kBus));
  directory_.Put("elsewhere", Message("m1", "a1", "one"));
  directory_.Link("elsewhere", kBus);
  EXPECT_THAT(Troubles(), HasSubstr("bus_queue.jsonl"));
  std::filesystem::remove(directory_.At(kBus));
  ASSERT_EQ(::mkfifo(directory_.At(kBus).c_str(), 0600), 0);
  EXPECT_THAT(Troubles(), HasSubstr("bus_queue.jsonl is not a regular file; move it away"));
  EXPECT_THAT(RunAll(Reply("done")), ElementsAre());
  std::filesystem::remove(directory_.At(kBus));
  directory_.Put(kBus, Message("m1", "a1", "one"));
  Look();
  EXPECT_THAT(RunAll(Reply("done")), ElementsAre("a1: one")) << "control";
}

TEST_F(BusQueueTest, WhatDoesNotFitIntoTheLedgerStaysInTheFile) {
  {
    Database ledger = Database::Open(directory_.At(kLedgerFile)).value();
    ASSERT_TRUE(ledger
                    .Execute(Text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                                  "WHERE i < ",
                                  kMaxWaitingTasks - 1,
                                  ") INSERT INTO tasks SELECT 'q' || i, 'z', 'bus', '', "
                                  "'accepted', '', '', 1, 0, 0 FROM n"))
                    .ok());
  }
  directory_.Put(kBus, Message("m1", "a1", "one") + Message("m2", "a2", "two"));
  EXPECT_THAT(Troubles(), HasSubstr("10000 tasks wait already"));
  EXPECT_EQ(Bus(), Message("m2", "a2", "two"));
  ASSERT_TRUE(OpenLedger().CancelWaiting("q1", 9).value());
  Look();
  EXPECT_EQ(Bus(), "");
}

TEST_F(BusQueueTest, AHomeWithoutQueuesIsLeftAlone) {
  Look();
  EXPECT_FALSE(std::filesystem::exists(directory_.At("locks")));
  EXPECT_FALSE(std::filesystem::exists(directory_.At("bus_queue.jsonl.lock")));
}

TEST_F(BusQueueTest, OneGatewayServesTheQueuesOfAHome) {
  directory_.Put(kBus, Message("m1", "a1", "one"));
  {
    const UniqueFd other = TakeHomeLock(home_->fd.get(), "gateway.lock").value();
    directory_.Put("locks/gateway.lock.holder", "pid=77 since=then\n");
    EXPECT_THAT(Troubles(), HasSubstr("another gateway serves the queues of this home (pid=77 "
                                      "since=then): nothing is taken from them until it ends"));
    EXPECT_EQ(Bus(), Message("m1", "a1", "one"));
  }
  Look();
  EXPECT_EQ(Bus(), "");
  EXPECT_EQ(TakeHomeLock(home_->fd.get(), "gateway.lock").error().err, EWOULDBLOCK)
      << "another one would be refused from now on";
  EXPECT_THAT(directory_.Get("locks/gateway.lock.holder"),
              HasSubstr(Text("pid=", ::getpid(), " since=")));
  EXPECT_EQ(directory_.Get("locks/gateway.lock"), "");
  intake_.reset();
  EXPECT_TRUE(TakeHomeLock(home_->fd.get(), "gateway.lock").ok());
}

}  // namespace
}  // namespace taskcell::gateway
