#include "gateway/ledger/audit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gateway/ledger/receipt.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::gateway {
namespace {

class LedgerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    home_ = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string Log() const {
    std::ifstream in(path_ + "/security_audit.jsonl");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string path_ = "/tmp/taskcell-ledger-test-XXXXXX";
  UniqueFd home_;
};

AuditEvent Unavailable() {
  return {"task_sandbox_unavailable",
          "a1",
          "warning",
          {{"when_unavailable", "fail"}, {"runtime", "openai_compat"}, {"reason", "no_account"}}};
}

TEST(AuditLineTest, FieldsStandInOrderAndDetailsAreSorted) {
  const WallClock::time_point time{std::chrono::microseconds{1790928930123456}};
  EXPECT_EQ(AuditLine(Unavailable(), time),
            "{\"timestamp\":\"2026-10-02T08:15:30.123456+00:00\","
            "\"event_type\":\"task_sandbox_unavailable\",\"agent_id\":\"a1\","
            "\"severity\":\"warning\",\"details\":{\"reason\":\"no_account\","
            "\"runtime\":\"openai_compat\",\"when_unavailable\":\"fail\"}}");
}

TEST(AuditLineTest, NumbersAreNumbersAndLineBreaksCannotForgeALine) {
  AuditEvent event{"task_sandbox_cleanup_failed", "a\nb", "warning", {{"count", uint64_t{1}}}};
  const std::string line = AuditLine(event, WallClock::now());
  EXPECT_NE(line.find("\"count\":1"), std::string::npos);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST_F(LedgerTest, ManyWritersNeverMixTheirLines) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([this] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(AppendAudit(home_.get(), Unavailable()).ok());
    });
  }
  for (std::thread& writer : writers) writer.join();
  int lines = 0;
  const std::string log = Log();
  for (std::string_view line : Split(log, '\n')) {
    if (line.empty()) continue;
    ++lines;
    EXPECT_TRUE(line.starts_with("{\"timestamp\":") && line.ends_with("}}")) << line;
  }
  EXPECT_EQ(lines, 200);
  struct stat info = {};
  ASSERT_EQ(::stat((path_ + "/security_audit.jsonl").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
}

TEST_F(LedgerTest, LinkOrFifoInPlaceOfTheLogIsRefused) {
  std::ofstream(path_ + "/victim") << "untouched";
  ASSERT_EQ(::symlinkat("victim", home_.get(), kAuditFile), 0);
  EXPECT_FALSE(AppendAudit(home_.get(), Unavailable()).ok());
  EXPECT_EQ(std::filesystem::file_size(path_ + "/victim"), 9U);
  ASSERT_EQ(::unlinkat(home_.get(), kAuditFile, 0), 0);
  ASSERT_EQ(::mkfifoat(home_.get(), kAuditFile, 0600), 0);
  EXPECT_FALSE(AppendAudit(home_.get(), Unavailable()).ok());
  ASSERT_EQ(::unlinkat(home_.get(), kAuditFile, 0), 0);
  EXPECT_TRUE(AppendAudit(home_.get(), Unavailable()).ok());
}

TEST_F(LedgerTest, HeldLockIsWaitedForOnlySoLong) {
  ASSERT_TRUE(AppendAudit(home_.get(), Unavailable()).ok());
  UniqueFd holder = sys::Open(path_ + "/" + kAuditFile, O_RDONLY).value();
  ASSERT_TRUE(sys::Lock(holder.get(), LOCK_EX).ok());
  EXPECT_FALSE(AppendAudit(home_.get(), Unavailable(), std::chrono::milliseconds{50}).ok());
  holder.Reset();
  EXPECT_TRUE(AppendAudit(home_.get(), Unavailable(), std::chrono::milliseconds{50}).ok());
}

TEST_F(LedgerTest, ReceiptIsWrittenOnceAndPrivate) {
  ASSERT_TRUE(WriteReceipt(home_.get(), "0123", "{}").ok());
  EXPECT_FALSE(WriteReceipt(home_.get(), "0123", "{\"other\":1}").ok());
  struct stat info = {};
  ASSERT_EQ(::stat((path_ + "/receipts/0123.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_EQ(info.st_size, 3);
  ASSERT_EQ(::stat((path_ + "/receipts").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
}

// As on a disk that is full in the middle of it: the file may not grow further.
TEST_F(LedgerTest, WhatDoesNotFitWholeIsNotThereInPart) {
  ASSERT_TRUE(AppendAudit(home_.get(), Unavailable()).ok());
  const std::string before = Log();
  const int status = test::InChild([&] {
    const rlim_t part = before.size() + 10;
    const struct rlimit limit = {part, part};
    (void)std::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const bool audited = AppendAudit(home_.get(), Unavailable()).ok();
    const bool written = WriteReceipt(home_.get(), "0123", std::string(part, ' ')).ok();
    return audited || written ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Log(), before);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/receipts/0123.json"));
}

TEST(ReceiptTest, LimitsStandSideBySide) {
  Receipt receipt;
  receipt.plan.limits = {1000, 32, 500, 1024};
  receipt.plan.tmpfs = {{"/tmp", 4096, 01777, true}};
  receipt.seen.inside.tmpfs = {{"/tmp", 4096}};
  receipt.seen.outside.limits.memory_bytes = 1000;
  receipt.seen.outside.limits.pids = cell::LimitsSeen::kUnlimited;
  receipt.seen.outside.limits.cpu_quota_us = 50000;
  receipt.seen.outside.limits.cpu_period_us = 100000;
  const std::string json = ReceiptJson(receipt);
  for (std::string_view part :
       {R"({"limit":"memory_bytes","asked":1000,"seen_inside":null,"seen_outside":1000})",
        R"({"limit":"pids","asked":32,"seen_inside":null,"seen_outside":"unlimited"})",
        R"({"limit":"cpu_millis","asked":500,"seen_inside":null,"seen_outside":500})",
        R"({"target":"/tmp","asked":4096,"seen_inside":4096})"})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
}

}  // namespace
}  // namespace taskcell::gateway
