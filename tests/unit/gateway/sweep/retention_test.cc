#include "gateway/sweep/retention.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "gateway/ledger/audit.h"
#include "gateway/ledger/ledger.h"
#include "gateway/ledger/receipt_audit.h"
#include "gateway/ledger/receipt_chain.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

constexpr int64_t kDay = 86400;
constexpr int64_t kNow = 20'000 * kDay + 3600;  // 2024-10-04T01:00:00

class RetentionTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::chmod(directory_.path().c_str(), 0700), 0); }

  SweepReport Apply(const Retention& retention, bool dry_run = false) {
    const Home home = OpenHome(directory_.path()).value();
    SweepReport report;
    ApplyRetention(home, retention, {kNow, dry_run}, report);
    EXPECT_TRUE(report.failures.empty()) << report.notes.at(0);
    return report;
  }
  Ledger Open() { return Ledger::Open(home_.get(), directory_.path()).value(); }
  bool Exists(const std::string& name) const {
    return std::filesystem::exists(directory_.At(name));
  }
  void SetAge(const std::string& name, int64_t days) const {
    const struct timespec time = {kNow - days * kDay, 0};
    const struct timespec both[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, directory_.At(name).c_str(), both, 0), 0);
  }
  void EndTask(Ledger& ledger, const std::string& id, int64_t days_ago) {
    TaskRow task;
    task.id = id;
    task.agent = "a";
    task.kind = "bus";
    task.started_ms = task.accepted_ms = 1;
    ASSERT_TRUE(ledger.Start(task).ok());
    ASSERT_TRUE(ledger.StartRun({"run-" + id, id, "e", "acc", 1, 2, 0}).ok());
    TaskEnd end;
    end.state = TaskState::kDone;
    end.code = "ok";
    end.ended_ms = (kNow - days_ago * kDay) * 1000;
    end.answer = std::string(20000, 'x');
    ASSERT_TRUE(ledger.Finish(id, end).ok());
  }

  test::TempDirectory directory_{"retention"};
  UniqueFd home_ = sys::Open(directory_.path(), O_RDONLY | O_DIRECTORY).value();
};

Bound Days(uint64_t days) { return {days, std::nullopt}; }
Bound Bytes(uint64_t bytes) { return {std::nullopt, bytes}; }

TEST_F(RetentionTest, WithoutBoundsNothingGoes) {
  directory_.Put("logs/gateway.log.2000-01-01", "x");
  directory_.Put(Text("exports/", std::string(32, 'a'), "/f"), "x");
  EXPECT_TRUE(Apply({}).expired.empty());
  EXPECT_TRUE(Exists("logs/gateway.log.2000-01-01"));
}

TEST_F(RetentionTest, LogsGoByTheirDayAndBytesAndTodaysStays) {
  for (const char* day : {"2024-10-01", "2024-10-02", "2024-10-03", "2024-10-04"})
    directory_.Put(Text("logs/gateway.log.", day), std::string(100, 'x'));
  directory_.Put("logs/other.log.2000-01-01", "not ours");
  directory_.Put("logs/gateway.log.2000-01-01.gz", "not ours");
  Retention retention;
  retention.logs = Days(2);
  EXPECT_EQ(Apply(retention, true).expired, std::vector<std::string>{"1 log"});
  EXPECT_TRUE(Exists("logs/gateway.log.2024-10-01")) << "only a look";
  EXPECT_EQ(Apply(retention).expired, std::vector<std::string>{"1 log"});
  EXPECT_FALSE(Exists("logs/gateway.log.2024-10-01"));
  EXPECT_TRUE(Exists("logs/gateway.log.2024-10-02"));
  retention.logs = Bytes(150);
  Apply(retention);
  EXPECT_FALSE(Exists("logs/gateway.log.2024-10-02"));
  EXPECT_TRUE(Exists("logs/gateway.log.2024-10-03"));
  retention.logs = Bytes(1);
  Apply(retention);
  EXPECT_FALSE(Exists("logs/gateway.log.2024-10-03"));
  EXPECT_TRUE(Exists("logs/gateway.log.2024-10-04")) << "it is written to";
  EXPECT_TRUE(Exists("logs/other.log.2000-01-01"));
  EXPECT_TRUE(Exists("logs/gateway.log.2000-01-01.gz"));
}

TEST_F(RetentionTest, ExportsGoWholeTheOldestFirst) {
  const std::string old_one(32, 'a');
  const std::string new_one(32, 'b');
  for (const std::string& run : {old_one, new_one}) {
    directory_.Put(Text("exports/", run, "/deep/file"), std::string(5000, 'x'));
    SetAge("exports/" + run, run == old_one ? 5 : 1);
  }
  directory_.Put("exports/kept-by-hand/file", "x");
  SetAge("exports/kept-by-hand", 50);
  Retention retention;
  retention.exports = Bytes(30000);
  EXPECT_TRUE(Apply(retention).expired.empty());
  retention.exports = Bytes(15000);
  EXPECT_EQ(Apply(retention).expired, std::vector<std::string>{"1 export"});
  EXPECT_FALSE(Exists("exports/" + old_one));
  EXPECT_TRUE(Exists("exports/" + new_one));
  SetAge("exports/" + new_one, 3);
  retention.exports = Days(2);
  Apply(retention);
  EXPECT_FALSE(Exists("exports/" + new_one));
  EXPECT_TRUE(Exists("exports/kept-by-hand")) << "no run of ours has such a name";
}

TEST_F(RetentionTest, ReceiptsGoFromTheBeginningOfTheirChain) {
  {
    Ledger ledger = Open();
    for (int64_t days : {9, 5, 1})
      ASSERT_TRUE(AppendReceipt(home_.get(), ledger, "{\"run_id\":\"x\"}",
                                MomentOf(std::chrono::seconds(kNow - days * kDay)))
                      .ok());
  }
  Retention retention;
  retention.receipts = Days(3);
  EXPECT_EQ(Apply(retention).expired, std::vector<std::string>{"2 receipts"});
  const ChainReport report = VerifyReceipts(home_.get(), directory_.path()).value();
  EXPECT_EQ(report.fault_count, 0);
  EXPECT_EQ(report.receipts, 1);
  EXPECT_EQ(report.removed, 2);
}

TEST_F(RetentionTest, TasksThatEndedGoWithAllThatIsTheirsAndOthersStay) {
  Ledger ledger = Open();
  for (int i = 0; i < 300; ++i) EndTask(ledger, Text("old", i), 10);
  EndTask(ledger, "young", 1);
  TaskRow waiting;
  waiting.id = "waiting";
  waiting.agent = "a";
  ASSERT_TRUE(ledger.Accept(waiting, "p").ok());
  EndTask(ledger, "due", 10);
  Retention retention;
  retention.ledger = Days(3);
  {
    IntakeRow message;
    message.rail = "bus";
    message.message = "m";
    message.task = "due";
    ASSERT_TRUE(ledger.RefuseMessage(message).ok()) << "one whose reply is due";
  }
  const int64_t before = ledger.UsedBytes().value();
  EXPECT_EQ(Apply(retention, true).expired, std::vector<std::string>{"300 tasks of the ledger"});
  EXPECT_EQ(Apply(retention).expired, std::vector<std::string>{"300 tasks of the ledger"});
  EXPECT_FALSE(ledger.Task("old7").value().has_value());
  EXPECT_FALSE(ledger.HasRun("run-old7").value());
  EXPECT_TRUE(ledger.Answer("old7").value().empty());
  EXPECT_TRUE(ledger.Task("due").value().has_value());
  EXPECT_TRUE(ledger.HasRun("run-young").value());
  EXPECT_EQ(ledger.Waiting().value(), 1);
  EXPECT_LT(ledger.UsedBytes().value(), before / 10);
  retention.ledger = Bytes(kMaxRetentionBytes);
  EXPECT_TRUE(Apply(retention, true).notes.empty());
  retention.ledger = Bytes(1);
  const SweepReport look = Apply(retention, true);
  ASSERT_EQ(look.notes.size(), 1U);
  EXPECT_NE(look.notes[0].find(" bytes, more than ledger_bytes (1): "), std::string::npos)
      << look.notes[0];
  EXPECT_TRUE(ledger.Task("young").value().has_value()) << "only a look";
  Apply(retention);
  EXPECT_FALSE(ledger.Task("young").value().has_value()) << "the bytes count, too";
  EXPECT_TRUE(ledger.Task("due").value().has_value());
  EXPECT_EQ(ledger.Waiting().value(), 1);
}

}  // namespace
}  // namespace taskcell::gateway
