#include "gateway/ledger/ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

class TaskLedgerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    home_ = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
  }
  void TearDown() override { fs::remove_all(path_); }

  Result<Ledger> Open() { return Ledger::Open(home_.get(), path_); }
  static TaskRow Row(const std::string& id) {
    TaskRow row;
    row.id = id;
    row.agent = "a1";
    row.kind = "run";
    row.accepted_ms = 5;
    row.started_ms = 7;
    return row;
  }

  std::string path_ = "/tmp/taskcell-ledger-XXXXXX";
  UniqueFd home_;
};

TEST_F(TaskLedgerTest, LookingMakesNothing) {
  Result<std::optional<Ledger>> ledger = Ledger::OpenExisting(home_.get(), path_);
  ASSERT_TRUE(ledger.ok());
  EXPECT_FALSE(ledger->has_value());
  EXPECT_TRUE(fs::is_empty(path_));
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(Ledger::OpenExisting(home_.get(), path_)->has_value());
}

TEST_F(TaskLedgerTest, NobodyElseMayReadItOrWhatSqliteLaysBesideIt) {
  Ledger ledger = Open().value();
  ASSERT_TRUE(ledger.Start(Row("t1")).ok());
  int files = 0;
  for (const auto& entry : fs::directory_iterator(path_)) {
    struct stat info = {};
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 2) << "the file and its log";
}

TEST_F(TaskLedgerTest, ATaskIsStartedAndFinishedOnce) {
  Ledger ledger = Open().value();
  ASSERT_TRUE(ledger.Start(Row("t1")).ok());
  EXPECT_EQ(ledger.Task("t1").value()->state, TaskState::kRunning);
  EXPECT_FALSE(ledger.Start(Row("t1")).ok()) << "nothing runs twice";
  ASSERT_TRUE(ledger.Finish("t1", {TaskState::kFailed, "timeout", "too long", 9, "", ""}).ok());
  const TaskEnd done = {TaskState::kDone, "ok", "", 10, "", ""};
  EXPECT_FALSE(ledger.Finish("t1", done).ok()) << "nothing ends twice";
  EXPECT_FALSE(ledger.Finish("t2", done).ok());
  const TaskRow row = ledger.Task("t1").value().value();
  EXPECT_EQ(row.state, TaskState::kFailed);
  EXPECT_EQ(row.code, "timeout");
  EXPECT_EQ(row.message, "too long");
  EXPECT_EQ(row.agent, "a1");
  EXPECT_EQ(row.kind, "run");
  EXPECT_EQ(row.accepted_ms, 5);
  EXPECT_EQ(row.started_ms, 7);
  EXPECT_EQ(row.ended_ms, 9);
}

TEST_F(TaskLedgerTest, WhatWasWrittenIsThereForTheNextProcess) {
  {
    Ledger ledger = Open().value();
    ASSERT_TRUE(ledger.Start(Row("t1")).ok());
    ASSERT_TRUE(ledger.StartRun({"r1", "t1", "native", "mine", 10, 20, 0}).ok());
    ASSERT_TRUE(ledger.StartRun({"r2", "t1", "native", "other", 10, 20, 0}).ok());
    ASSERT_TRUE(ledger.FinishRun("r1", 15).ok());
  }
  Ledger ledger = Open().value();
  const std::vector<RunRow> runs = ledger.Runs("t1").value();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].id, "r1");
  EXPECT_EQ(runs[0].account, "mine");
  EXPECT_EQ(runs[0].deadline_ms, 20);
  EXPECT_EQ(runs[0].ended_ms, 15);
  EXPECT_EQ(runs[1].ended_ms, 0);
  EXPECT_TRUE(ledger.Runs("t2").value().empty());
}

TEST_F(TaskLedgerTest, ACellOfAScriptIsForgottenAndOneOfATaskNever) {
  Ledger ledger = Open().value();
  ASSERT_TRUE(ledger.Start(Row("t1")).ok());
  ASSERT_TRUE(ledger.StartRun({"r1", "t1", "docker", "mine", 10, 20, 0}).ok());
  ASSERT_TRUE(ledger.StartRun({"r2", "", "docker", "", 10, 20, 0}).ok());
  EXPECT_TRUE(ledger.HasRun("r2").value());
  ASSERT_TRUE(ledger.ForgetScriptRun("r2").ok());
  EXPECT_FALSE(ledger.HasRun("r2").value());
  ASSERT_TRUE(ledger.ForgetScriptRun("r1").ok());
  EXPECT_TRUE(ledger.HasRun("r1").value());
}

TEST_F(TaskLedgerTest, TasksAreListedNewestFirstUpToTheLimit) {
  Ledger ledger = Open().value();
  for (int i = 0; i < 4; ++i) {
    TaskRow row = Row("t" + std::to_string(i));
    row.accepted_ms = i;
    ASSERT_TRUE(ledger.Start(row).ok());
  }
  const std::vector<TaskRow> tasks = ledger.Tasks(3).value();
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].id, "t3");
  EXPECT_EQ(tasks[2].id, "t1");
}

TEST_F(TaskLedgerTest, TextsThatAreNoSqlStayTexts) {
  Ledger ledger = Open().value();
  TaskRow row = Row("t'); DROP TABLE tasks; --");
  ASSERT_TRUE(ledger.Start(row).ok());
  EXPECT_EQ(ledger.Tasks(9).value().at(0).id, row.id);
}

TEST_F(TaskLedgerTest, TwoWritersLoseNothing) {
  ASSERT_TRUE(Open().ok());
  constexpr int kRounds = 40;
  std::atomic<int> failures = 0;
  auto count = [&] {
    Result<Ledger> ledger = Open();
    if (!ledger.ok()) {
      ++failures;
      return;
    }
    for (int i = 0; i < kRounds; ++i)
      if (!ledger->ChangeAccount("a", "f", [](AccountState& state) { ++state.errors; }).ok())
        ++failures;
  };
  std::thread one(count);
  std::thread two(count);
  one.join();
  two.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Open()->Accounts().value().at(0).errors, 2 * kRounds);
}

TEST_F(TaskLedgerTest, ManyThatMakeItAtOnceAllHaveIt) {
  constexpr int kRounds = 60;
  constexpr int kOpeners = 6;
  for (int round = 0; round < kRounds; ++round) {
    const test::TempDirectory home("ledger", "/dev/shm");  // no disk slows them: they meet
    const UniqueFd home_fd = sys::Open(home.path(), O_RDONLY | O_DIRECTORY).value();
    std::atomic<bool> go = false;
    std::vector<std::string> failures(kOpeners);
    std::vector<std::thread> openers;
    for (std::string& failure : failures) {
      openers.emplace_back([&] {
        while (!go) std::this_thread::yield();
        Result<Ledger> ledger = Ledger::Open(home_fd.get(), home.path());
        if (!ledger.ok()) failure = ledger.error().text;
      });
    }
    go = true;
    for (std::thread& opener : openers) opener.join();
    EXPECT_EQ(failures, std::vector<std::string>(kOpeners)) << "round " << round;
  }
}

TEST_F(TaskLedgerTest, WhatWasLearntWithOneSecretIsForgottenWithTheNext) {
  Ledger ledger = Open().value();
  auto fail = [](AccountState& state) { ++state.errors; };
  ASSERT_TRUE(ledger.ChangeAccount("a", "old", fail).ok());
  ASSERT_TRUE(ledger.ChangeAccount("a", "old", fail).ok());
  EXPECT_EQ(ledger.Accounts().value().at(0).errors, 2);
  ASSERT_TRUE(ledger.ChangeAccount("a", "new", fail).ok());
  const std::vector<AccountState> states = ledger.Accounts().value();
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].errors, 1);
  EXPECT_EQ(states[0].fingerprint, "new");
}

TEST_F(TaskLedgerTest, AFileThatIsNoLedgerIsNamedAndLeftAlone) {
  const std::string text(200, 'x');
  std::ofstream(path_ + "/taskcell.db") << text;
  Result<Ledger> ledger = Open();
  ASSERT_FALSE(ledger.ok());
  EXPECT_EQ(ledger.error().kind, Kind::kConfig);
  EXPECT_NE(ledger.error().text.find("taskcell.db"), std::string::npos) << ledger.error().text;
  EXPECT_EQ(sys::ReadFile(home_.get(), "taskcell.db", 1000).value(), text);
}

TEST_F(TaskLedgerTest, ALinkOrAFifoInItsPlaceIsNotFollowedOrWaitedFor) {
  std::ofstream(path_ + "/elsewhere") << "";
  ASSERT_EQ(::symlink("elsewhere", (path_ + "/taskcell.db").c_str()), 0);
  EXPECT_FALSE(Open().ok());
  ASSERT_EQ(::unlink((path_ + "/taskcell.db").c_str()), 0);
  ASSERT_EQ(::mkfifo((path_ + "/taskcell.db").c_str(), 0600), 0);
  EXPECT_FALSE(Open().ok());
}

TEST_F(TaskLedgerTest, ALedgerOfANewerVersionIsRefused) {
  ASSERT_TRUE(Open().ok());
  {
    Database database = Database::Open(path_ + "/taskcell.db").value();
    ASSERT_TRUE(database.Execute("PRAGMA user_version = 5").ok());
  }
  Result<Ledger> ledger = Open();
  ASSERT_FALSE(ledger.ok());
  EXPECT_NE(ledger.error().text.find("version 5"), std::string::npos) << ledger.error().text;
}

constexpr int64_t kNow = 1000000;
constexpr int64_t kCooldown = 120;

TEST(AccountStateTest, ARateLimitCoolsAsLongAsTheProviderAsksOrByTheSetting) {
  AccountState state;
  Advance(state, AccountOutcome::kRateLimited, kNow, 0, kCooldown);
  EXPECT_EQ(state.cooling_until, kNow + kCooldown);
  EXPECT_EQ(state.cooling_because, "rate limit");
  Advance(state, AccountOutcome::kRateLimited, kNow, 30, kCooldown);
  EXPECT_EQ(state.cooling_until, kNow + 30);
  Advance(state, AccountOutcome::kRateLimited, kNow, int64_t{1} << 40, kCooldown);
  EXPECT_EQ(state.cooling_until, kNow + 24 * 3600) << "no provider decides beyond a day";
}

TEST(AccountStateTest, FailedAuthenticationBacksOffDoublingUpToSixHours) {
  AccountState state;
  for (int64_t minutes : {15, 30, 60, 120, 240, 360, 360}) {
    Advance(state, AccountOutcome::kAuthFailed, kNow, 0, kCooldown);
    EXPECT_EQ(state.cooling_until, kNow + minutes * 60);
  }
  Advance(state, AccountOutcome::kSuccess, kNow, 0, kCooldown);
  EXPECT_EQ(state.cooling_until, 0);
  Advance(state, AccountOutcome::kAuthFailed, kNow, 0, kCooldown);
  EXPECT_EQ(state.cooling_until, kNow + 15 * 60) << "a success forgives";
}

TEST(AccountStateTest, ThreeErrorsInARowCoolAndOneSuccessBetweenForgives) {
  AccountState state;
  Advance(state, AccountOutcome::kError, kNow, 0, kCooldown);
  Advance(state, AccountOutcome::kError, kNow, 0, kCooldown);
  EXPECT_EQ(state.cooling_until, 0);
  Advance(state, AccountOutcome::kSuccess, kNow, 0, kCooldown);
  Advance(state, AccountOutcome::kError, kNow, 0, kCooldown);
  Advance(state, AccountOutcome::kError, kNow, 0, kCooldown);
  EXPECT_EQ(state.cooling_until, 0);
  Advance(state, AccountOutcome::kError, kNow, 0, kCooldown);
  EXPECT_EQ(state.cooling_until, kNow + kCooldown);
  EXPECT_EQ(state.last_used, kNow);
}

TEST(AccountStateTest, BillingCoolsForADay) {
  AccountState state;
  Advance(state, AccountOutcome::kBilling, kNow, 5, kCooldown);
  EXPECT_EQ(state.cooling_until, kNow + 24 * 3600);
}

}  // namespace
}  // namespace taskcell::gateway
