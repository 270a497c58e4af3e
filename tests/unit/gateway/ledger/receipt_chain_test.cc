#include "gateway/ledger/receipt_chain.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "gateway/ledger/receipt_audit.h"
#include "gateway/ledger/receipt_retention.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/kill_at_call.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

using Lines = std::vector<std::string>;

class ReceiptChainTest : public testing::Test {
 protected:
  Ledger Open() { return Ledger::Open(home_.get(), directory_.path()).value(); }
  static std::string RunId(int number) {
    return Text(std::string(30, 'a'), number / 10 % 10, number % 10);
  }
  static std::string Receipt(int number) {
    return Text(R"({"run_id":")", RunId(number), R"(","agent":"a1"})");
  }
  Status Append(Ledger& ledger, int number) {
    const WallClock::time_point time{std::chrono::hours(24 * number)};
    return AppendReceipt(home_.get(), ledger, Receipt(number), time);
  }
  void Fill(int count) {
    Ledger ledger = Open();
    for (int i = 1; i <= count; ++i) ASSERT_TRUE(Append(ledger, i).ok());
  }
  ChainReport Verify() { return VerifyReceipts(home_.get(), directory_.path()).value(); }
  Lines Read() const {
    Lines lines;
    const std::string text = directory_.Get(kReceiptsFile);
    for (std::string_view line : Split(text, '\n'))
      if (!line.empty()) lines.emplace_back(line);
    return lines;
  }
  void Write(const Lines& lines) const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    directory_.Put(kReceiptsFile, text);
  }
  // The lines that are named as wrong.
  static std::vector<int64_t> Blamed(const ChainReport& report) {
    std::vector<int64_t> lines;
    for (const ChainFault& fault : report.faults) lines.push_back(fault.line);
    return lines;
  }
  int Elsewhere(const char* what) const {
    return test::Run({ONE_RECEIPT, directory_.path(), what}).status;
  }
  // As Elsewhere, killed as it is about to make its change number `nth`.
  int KilledAt(const char* what, int nth) const {
    return test::KillAtCall(
        [this, what] {
          (void)::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // none are found while traced
          ::execl(ONE_RECEIPT, ONE_RECEIPT, directory_.path().c_str(), what, nullptr);
        },
        {SYS_write, SYS_pwrite64, SYS_rename, SYS_renameat, SYS_renameat2, SYS_fsync, SYS_unlink,
         SYS_unlinkat, SYS_fdatasync, SYS_ftruncate},
        nth);
  }

  test::TempDirectory directory_{"chain"};
  UniqueFd home_ = sys::Open(directory_.path(), O_RDONLY | O_DIRECTORY).value();
};

constexpr int kCount = 6;

TEST_F(ReceiptChainTest, EachLineHoldsTheDigestOfTheOneBefore) {
  Fill(kCount);
  const Lines lines = Read();
  ASSERT_EQ(lines.size(), std::size_t{kCount});
  Digest previous = kNoDigest;
  for (int i = 0; i < kCount; ++i) {
    const std::optional<ChainLine> line = ParseChainLine(lines[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(line.has_value()) << lines[static_cast<std::size_t>(i)];
    EXPECT_EQ(line->number, i + 1);
    EXPECT_EQ(line->previous, previous);
    EXPECT_EQ(line->receipt, Receipt(i + 1));
    EXPECT_EQ(RunOfReceipt(line->receipt), RunId(i + 1));
    previous = DigestOf(lines[static_cast<std::size_t>(i)]);
  }
  const ChainReport report = Verify();
  EXPECT_EQ(report.fault_count, 0);
  EXPECT_EQ(report.receipts, kCount);
  EXPECT_EQ(report.last_digest, Hex(previous));
  struct stat info = {};
  ASSERT_EQ(::stat(directory_.At(kReceiptsFile).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
}

TEST_F(ReceiptChainTest, AHomeWithoutReceiptsIsValidAndLeftAlone) {
  const ChainReport report = Verify();
  EXPECT_EQ(report.fault_count, 0);
  EXPECT_EQ(report.receipts, 0);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(ReceiptChainTest, AnEditOfAnyLineNamesThatLine) {
  Fill(kCount);
  const Lines lines = Read();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // Of the receipt, of the number, of the digest, of the time; and a line that is none.
    for (std::string_view part : {"a1", "\"n\":", "prev\":\"", "time\":\"19"}) {
      Lines changed = lines;
      std::string& line = changed[i];
      const std::size_t at = line.find(part) + part.size();
      line[at] = line[at] == '7' ? '8' : '7';
      Write(changed);
      EXPECT_EQ(Blamed(Verify()), std::vector<int64_t>{static_cast<int64_t>(i) + 1})
          << "line " << i + 1 << ", behind " << part;
    }
    Lines changed = lines;
    changed[i] = "nonsense";
    Write(changed);
    EXPECT_EQ(Blamed(Verify()), std::vector<int64_t>{static_cast<int64_t>(i) + 1}) << i + 1;
  }
  Write(lines);
  EXPECT_EQ(Verify().fault_count, 0) << "control";
}

TEST_F(ReceiptChainTest, ACutAnywhereShowsAtTheEndToo) {
  Fill(kCount);
  const Lines lines = Read();
  for (std::size_t from = 0; from < lines.size(); ++from) {
    for (std::size_t count = 1; from + count <= lines.size(); ++count) {
      Lines cut = lines;
      const auto begin = cut.begin() + static_cast<std::ptrdiff_t>(from);
      cut.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
      Write(cut);
      const ChainReport report = Verify();
      // The line in front of the gap, or the first one.
      EXPECT_EQ(Blamed(report),
                std::vector<int64_t>{std::max<int64_t>(1, static_cast<int64_t>(from))})
          << from << " " << count;
    }
  }
  std::filesystem::remove(directory_.At(kReceiptsFile));
  EXPECT_EQ(Verify().fault_count, 1) << "all of it";
  const std::string half = lines[0].substr(0, 20);
  directory_.Put(kReceiptsFile, half);
  EXPECT_GE(Verify().fault_count, 1) << "in the middle of a line";
}

TEST_F(ReceiptChainTest, AnotherOrderAndWhatWasPutInShow) {
  Fill(kCount);
  const Lines lines = Read();
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    Lines swapped = lines;
    std::swap(swapped[i], swapped[i + 1]);
    Write(swapped);
    const std::vector<int64_t> blamed = Blamed(Verify());
    ASSERT_FALSE(blamed.empty()) << i;
    for (int64_t line : blamed)
      EXPECT_TRUE(line >= static_cast<int64_t>(i) && line <= static_cast<int64_t>(i) + 2) << line;
  }
  for (std::size_t i = 0; i <= lines.size(); ++i) {
    for (const std::string& put_in : {lines[2], std::string("{}"), std::string("x")}) {
      Lines more = lines;
      more.insert(more.begin() + static_cast<std::ptrdiff_t>(i), put_in);
      Write(more);
      EXPECT_EQ(Verify().fault_count, 1) << i << " " << put_in;
    }
  }
  // A line that continues the chain as it should, by somebody who cannot tell the ledger.
  ChainLine forged = ParseChainLine(lines.back()).value();
  ++forged.number;
  forged.previous = DigestOf(lines.back());
  Lines more = lines;
  more.push_back(WriteChainLine(forged));
  Write(more);
  EXPECT_EQ(Blamed(Verify()), std::vector<int64_t>{kCount + 1});
}

TEST_F(ReceiptChainTest, ANewReceiptMakesNothingUpForWhatWasChanged) {
  Fill(kCount);
  Lines lines = Read();
  lines.pop_back();
  lines[1][lines[1].size() - 4] = 'x';
  Write(lines);
  directory_.Put(kReceiptsFile, directory_.Get(kReceiptsFile) + "half a li");
  Ledger ledger = Open();
  ASSERT_TRUE(Append(ledger, kCount + 1).ok());
  const ChainReport report = Verify();
  EXPECT_EQ(Blamed(report), (std::vector<int64_t>{2, 6}))
      << "the edit; half a line for a whole one";
  EXPECT_EQ(report.last, kCount + 1);
}

TEST_F(ReceiptChainTest, TheFileOfAReceiptIsComparedWithItsLine) {
  Fill(2);
  directory_.Put(Text("sandbox/receipts/", RunId(2), ".json"), Receipt(2) + "\n");
  EXPECT_EQ(Verify().fault_count, 0);
  directory_.Put(Text("sandbox/receipts/", RunId(2), ".json"), "{}\n");
  EXPECT_EQ(Blamed(Verify()), std::vector<int64_t>{2});
}

TEST_F(ReceiptChainTest, ManyWritersMakeOneChain) {
  constexpr int kWriters = 4;
  constexpr int kEach = 10;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this] {
      Ledger ledger = Open();
      for (int i = 0; i < kEach; ++i) EXPECT_TRUE(Append(ledger, i).ok());
    });
  }
  for (int i = 0; i < kEach; ++i) EXPECT_EQ(Elsewhere("add"), 0);
  for (std::thread& writer : writers) writer.join();
  const ChainReport report = Verify();
  EXPECT_EQ(report.fault_count, 0);
  EXPECT_EQ(report.receipts, (kWriters + 1) * kEach);
}

TEST_F(ReceiptChainTest, KilledAtAnyChangeAWriterLeavesAChainThatGoesOn) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to kill at a call");
  ASSERT_EQ(Elsewhere("add"), 0);
  int round = 1;
  for (int status = 137; status == 137; ++round) {
    const int64_t before = Verify().receipts;
    status = KilledAt("add", round);
    ASSERT_TRUE(status == 137 || status == 0) << status;
    ChainReport report = Verify();
    EXPECT_EQ(report.fault_count, 0) << "killed at change " << round << ": "
                                     << (report.faults.empty() ? "" : report.faults[0].text);
    EXPECT_TRUE(report.receipts == before || report.receipts == before + 1);
    ASSERT_EQ(Elsewhere("add"), 0);
    report = Verify();
    EXPECT_EQ(report.fault_count, 0) << "after one that was killed at change " << round;
    EXPECT_TRUE(report.notes.empty());
    EXPECT_GT(report.receipts, before);
  }
  EXPECT_GT(round, 5) << "a receipt takes more changes than that";
}

// As on a disk that is full in the middle of a line.
TEST_F(ReceiptChainTest, WhatDoesNotFitLeavesNoPart) {
  Fill(kCount);
  {
    // So that the file is larger than the ledger's, which may grow all the same.
    Ledger ledger = Open();
    const std::string long_one = Text(R"({"run_id":")", std::string(4U << 20U, 'x'), R"("})");
    ASSERT_TRUE(AppendReceipt(home_.get(), ledger, long_one, WallClock::now()).ok());
  }
  const std::string before = directory_.Get(kReceiptsFile);
  const int status = test::InChild([&] {
    Ledger ledger = Open();
    const rlim_t part = before.size() + 20;
    const struct rlimit limit = {part, part};
    (void)std::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    return Append(ledger, 7).ok() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(directory_.Get(kReceiptsFile), before);
  EXPECT_EQ(Verify().fault_count, 0);
  Ledger ledger = Open();
  EXPECT_TRUE(Append(ledger, 8).ok());
  EXPECT_EQ(Verify().receipts, kCount + 2);
}

TEST_F(ReceiptChainTest, OldReceiptsGoAndTheRestStaysVerifiable) {
  Fill(kCount);
  for (int i = 1; i <= kCount; ++i)
    directory_.Put(Text("sandbox/receipts/", RunId(i), ".json"), Receipt(i) + "\n");
  Ledger ledger = Open();
  const ReceiptsBound bound{Rfc3339(WallClock::time_point{std::chrono::hours(24 * 4)}), {}};
  EXPECT_EQ(RemoveOldReceipts(home_.get(), ledger, bound, true).value(), 3) << "only a look";
  EXPECT_EQ(Read().size(), std::size_t{kCount});
  EXPECT_EQ(RemoveOldReceipts(home_.get(), ledger, bound, false).value(), 3);
  EXPECT_EQ(RemoveOldReceipts(home_.get(), ledger, bound, false).value(), 0) << "again";
  ChainReport report = Verify();
  EXPECT_EQ(report.fault_count, 0) << report.faults.at(0).text;
  EXPECT_EQ(report.removed, 3);
  EXPECT_EQ(report.receipts, 3);
  EXPECT_FALSE(
      std::filesystem::exists(directory_.At(Text("sandbox/receipts/", RunId(3), ".json"))));
  EXPECT_TRUE(std::filesystem::exists(directory_.At(Text("sandbox/receipts/", RunId(4), ".json"))));
  ASSERT_TRUE(Append(ledger, 7).ok());
  EXPECT_EQ(RemoveOldReceipts(home_.get(), ledger, {"", 0}, false).value(), 4) << "all of them";
  ASSERT_TRUE(Append(ledger, 8).ok());
  report = Verify();
  EXPECT_EQ(report.fault_count, 0) << report.faults.at(0).text;
  EXPECT_EQ(report.removed, 7);
  EXPECT_EQ(report.receipts, 1);
}

TEST_F(ReceiptChainTest, NobodyElseCanCutTheBeginningAway) {
  Fill(kCount);
  Ledger ledger = Open();
  ASSERT_EQ(
      RemoveOldReceipts(home_.get(), ledger,
                        {Rfc3339(WallClock::time_point{std::chrono::hours(24 * 3)}), {}}, false)
          .value(),
      2);
  Lines lines = Read();
  ASSERT_EQ(lines.size(), 5U);
  ChainLine stands = ParseChainLine(lines[0]).value();
  ++stands.number;
  stands.previous = DigestOf(lines[1]);
  Lines forged(lines.begin() + 1, lines.end());
  forged[0] = WriteChainLine(stands);
  Write(forged);
  EXPECT_EQ(Blamed(Verify()), std::vector<int64_t>{1});
  Write(Lines(lines.begin() + 1, lines.end()));
  EXPECT_EQ(Blamed(Verify()), std::vector<int64_t>{1}) << "without such a line";
  Write(lines);
  EXPECT_EQ(Verify().fault_count, 0) << "control";
}

TEST_F(ReceiptChainTest, NothingIsRemovedWhileSomethingIsWrong) {
  Fill(kCount);
  Lines lines = Read();
  lines[1][lines[1].size() - 4] = 'x';
  Write(lines);
  Ledger ledger = Open();
  Result<int64_t> removed = RemoveOldReceipts(home_.get(), ledger, {"", 0}, false);
  ASSERT_FALSE(removed.ok());
  EXPECT_NE(removed.error().text.find("line 2"), std::string::npos) << removed.error().text;
  EXPECT_EQ(Read(), lines);
}

TEST_F(ReceiptChainTest, KilledAtAnyChangeRemovalLeavesAChainThatGoesOn) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to kill at a call");
  int round = 1;
  for (int status = 137; status == 137; ++round) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(Elsewhere("add"), 0);
    status = KilledAt("remove", round);
    ASSERT_TRUE(status == 137 || status == 0) << status;
    const ChainReport report = Verify();
    EXPECT_EQ(report.fault_count, 0) << "killed at change " << round << ": "
                                     << (report.faults.empty() ? "" : report.faults[0].text);
    EXPECT_GT(report.receipts, 0);
    ASSERT_EQ(Elsewhere("remove"), 0);
    EXPECT_EQ(Verify().fault_count, 0) << "after one that was killed at change " << round;
    EXPECT_LE(directory_.Get(kReceiptsFile).size(), 800U);
  }
  EXPECT_GT(round, 5) << "it takes more changes than that";
}

}  // namespace
}  // namespace taskcell::gateway
