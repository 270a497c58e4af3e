#include "launcher/native/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OpenReportTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/taskcell-report-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override { fs::remove_all(path_); }

  // Why `path` is refused, "" when it is not.
  static std::string Refusal(const std::string& path) {
    Result<UniqueFd> opened = OpenReport(path);
    return opened.ok() ? "" : opened.error().text;
  }

  std::string path_;
};

TEST_F(OpenReportTest, AFileIsMadeForItsOwnerOnlyAndAnOldOneIsEmptied) {
  std::string file = path_ + "/report";
  UniqueFd made = OpenReport(file).value();
  EXPECT_EQ(sys::Stat(made.get()).value().st_mode & 0777, 0600);
  std::ofstream(file) << "an older report";
  OpenReport(file).value().Reset();
  EXPECT_EQ(fs::file_size(file), 0U);
}

TEST_F(OpenReportTest, WhatIsNoPlainFileIsRefusedAtOnceAndNamed) {
  ASSERT_EQ(::mkfifo((path_ + "/fifo").c_str(), 0600), 0);
  EXPECT_THAT(Refusal(path_ + "/fifo"), HasSubstr("is a FIFO"));
  UniqueFd reader = sys::Open(path_ + "/fifo", O_RDONLY | O_NONBLOCK).value();
  EXPECT_THAT(Refusal(path_ + "/fifo"), HasSubstr("is a FIFO"));
  UniqueFd listener = sys::ListenPackets(path_ + "/socket").value();
  EXPECT_THAT(Refusal(path_ + "/socket"), HasSubstr("is a socket"));
  EXPECT_THAT(Refusal(path_), HasSubstr("is a directory"));
  EXPECT_THAT(Refusal("/dev/full"), HasSubstr("is a character device"));
}

TEST_F(OpenReportTest, ALinkIsRefusedAndWhatItLeadsToStaysAsItIs) {
  std::ofstream(path_ + "/kept") << "kept";
  fs::create_symlink("kept", path_ + "/link");
  fs::create_symlink("nothing", path_ + "/dangling");
  for (const char* name : {"/link", "/dangling"})
    EXPECT_THAT(Refusal(path_ + name), HasSubstr("is a symbolic link"));
  EXPECT_EQ(fs::file_size(path_ + "/kept"), 4U);
  EXPECT_FALSE(fs::exists(path_ + "/nothing"));
}

TEST_F(OpenReportTest, AMissingDirectoryIsToldAsTheSystemTellsIt) {
  EXPECT_THAT(Refusal(path_ + "/no/report"), HasSubstr("No such file"));
}

TEST_F(OpenReportTest, WhatAProgramWroteToTheReportIsNotThereAfterwards) {
  std::string file = path_ + "/report";
  UniqueFd report = OpenReport(file).value();
  std::ofstream(file) << std::string(5000, 'x');
  ASSERT_TRUE(WriteReport(report.get(), "{}\n").ok());
  EXPECT_EQ(sys::ReadFile(AT_FDCWD, file, 100).value(), "{}\n");
}

Outcome TimedOut() {
  Outcome outcome;
  outcome.timed_out = true;
  outcome.exit.user_us = 40;
  outcome.exit.system_us = 2;
  return outcome;
}

TEST(ReportOutcomeTest, AProgramThatEndedWithinItsGraceTimeIsToldWithStatusAndTime) {
  Outcome outcome = TimedOut();
  outcome.exit.code = 3;
  std::string report = ReportOutcome({}, {}, outcome);
  EXPECT_THAT(report, HasSubstr(R"("status":124,"exit":3,"signal":null,"timed_out":true)"));
  EXPECT_THAT(report, HasSubstr(R"("cpu_us":42)"));
  outcome.exit.code = 0;
  outcome.exit.signal = 15;
  EXPECT_THAT(ReportOutcome({}, {}, outcome), HasSubstr(R"("exit":null,"signal":15)"));
}

TEST(ReportOutcomeTest, OfAKilledCellOnlyTheKernelsCountIsTold) {
  Outcome outcome = TimedOut();
  outcome.killed = true;
  std::string report = ReportOutcome({}, {}, outcome);
  EXPECT_THAT(report, HasSubstr(R"("exit":null,"signal":null,"timed_out":true)"));
  EXPECT_THAT(report, HasSubstr(R"("cpu_us":null)"));
  outcome.events.cpu_us = 7;
  EXPECT_THAT(ReportOutcome({}, {}, outcome), HasSubstr(R"("cpu_us":7)"));
}

}  // namespace
}  // namespace taskcell::native
