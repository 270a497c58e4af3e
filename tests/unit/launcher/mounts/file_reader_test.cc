#include "launcher/mounts/file_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "launcher/sys/file.h"
#include "tests/support/folding_files.h"
#include "tests/support/hung_files.h"
#include "tests/support/temp_directory.h"
#include "tests/support/wait_for.h"
#include "tests/unit/launcher/mounts/slow_writer.h"

namespace taskcell::mounts {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kShort{2000};  // an instrumented launcher takes a while to start
// Far below kReadTimeLimit times what is asked, and enough for a machine that is busy.
constexpr std::chrono::seconds kSoon{10};

class FileReaderTest : public testing::Test, protected test::TempDirectory {
 protected:
  FileReaderTest() : TempDirectory("file-reader") {
    Put("top/file", "content");
    Put("top/empty", "");
    fs::create_directories(At("top/hung"));
    Link("file", "top/link");
    HardLink("top/file", "top/other");
    EXPECT_EQ(::mkfifo(At("top/pipe").c_str(), 0600), 0);
    top_ = sys::Open(At("top"), O_RDONLY | O_DIRECTORY).value();
  }
  static std::string Launcher() { return test::Program("taskcell-launch"); }

  UniqueFd top_;
};

TEST_F(FileReaderTest, ByAChildItSaysTheSameAsInThisProcess) {
  for (const std::string& launcher : {Launcher(), std::string()}) {
    FileReader files(launcher);
    const int top = top_.get();
    EXPECT_EQ(files.Read(top, "file", 7).value(), "content") << launcher;
    EXPECT_EQ(files.Read(top, "empty", 7).value(), "");
    EXPECT_EQ(files.Read(top, "file", 6).error().err, EFBIG);
    EXPECT_EQ(files.Read(top, "absent", 7).error().err, ENOENT);
    EXPECT_EQ(files.Read(top, "link", 7).error().err, ELOOP);
    EXPECT_EQ(files.Read(top, "pipe", 7).error().err, EINVAL);
    EXPECT_EQ(files.Read(top, "hung", 7).error().err, EINVAL);
    EXPECT_EQ(files.Read(top, std::string(5000, 'x'), 7).error().err, ENAMETOOLONG);
    EXPECT_EQ(files.OpenDirectory(top, "file").error().err, ENOTDIR);
    UniqueFd opened = files.OpenDirectory(top, "hung").value();
    EXPECT_EQ(sys::Stat(opened.get())->st_ino, sys::StatAt(top, "hung")->st_ino);
    EXPECT_EQ(files.ReadPlain(top, "empty", 7)->verdict, Verdict::kSafe);
    EXPECT_EQ(files.ReadPlain(top, "absent", 7)->verdict, Verdict::kAbsent);
    const FileReader::Judged judged = files.ReadPlain(top, "file", 7).value();
    EXPECT_EQ(judged.verdict, Verdict::kSkip);
    EXPECT_EQ(judged.content, "");
    EXPECT_THAT(judged.note, HasSubstr("2 hard links"));
  }
}

// As in a snapshot: an agent's own file goes by its very name.
TEST_F(FileReaderTest, AFileOfAnAgentIsReadByTheVeryNameThatIsListed) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  EXPECT_EQ(test::InChild([&] {
              if (!test::EnterOwnMounts()) return 90;
              const test::FoldingFiles folding(At("top/hung"));
              if (!folding.mounted()) return 91;
              EXPECT_EQ(Get("top/hung/SOUL.md"), "soul") << "control: it is found";
              UniqueFd top = sys::Open(At("top/hung"), O_RDONLY | O_DIRECTORY).value();
              FileReader files("");
              const FileReader::Judged judged = files.ReadPlain(top.get(), "SOUL.md", 7).value();
              EXPECT_EQ(judged.verdict, Verdict::kSkip);
              EXPECT_EQ(judged.content, "");
              EXPECT_THAT(judged.note, HasSubstr("another spelling"));
              return HasFailure() ? 1 : 0;
            }),
            0);
  Put("top/SOUL.md", "soul");
  EXPECT_EQ(FileReader("").ReadPlain(top_.get(), "SOUL.md", 7)->content, "soul");
}

TEST_F(FileReaderTest, WhatHangsEndsAtTheLimitAndTheNextIsRead) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  for (test::HungFiles::Answers answers :
       {test::HungFiles::Answers::kRoot, test::HungFiles::Answers::kNothing}) {
    EXPECT_EQ(test::InChild([&] {
                if (!test::EnterOwnMounts()) return 90;
                const test::HungFiles hung(At("top/hung"), answers);
                if (!hung.mounted()) return 91;
                // In the mount namespace of this process.
                UniqueFd top = sys::Open(At("top"), O_RDONLY | O_DIRECTORY).value();
                FileReader files(Launcher(), kShort);
                const Clock::time_point begun = Clock::now();
                Result<std::string> read = files.Read(top.get(), "hung/file", 7);
                if (read.ok() || read.error().err != ETIMEDOUT) return 1;
                if (read.error().text.find("does not answer") == std::string::npos) return 2;
                if (Clock::now() - begun > kSoon) return 3;
                Result<std::string> next = files.Read(top.get(), "file", 7);
                return next.ok() && next.value() == "content" ? 0 : 4;
              }),
              0)
        << static_cast<int>(answers);
  }
}

// As in AWriteThatIsHeldHoldsNoSnapshotForLong: a reader waits on some file systems only.
TEST_F(FileReaderTest, AWriteThatIsHeldHoldsNoReaderForLong) {
  Put("top/slow", std::string(2 * SlowWriter::kPage, 'a'));
  SlowWriter writer(At("top/slow"), std::string(2 * SlowWriter::kPage, 'b'));
  TASKCELL_REQUIRE(writer.Stands(), "needs userfaultfd(2) of the kernel's own accesses: root");
  FileReader files(Launcher(), kShort);
  const Clock::time_point begun = Clock::now();
  Result<std::string> read = files.Read(top_.get(), "slow", 1U << 20U);
  EXPECT_LT(Clock::now() - begun, kSoon);
  EXPECT_TRUE(read.ok() || read.error().err == ETIMEDOUT) << read.error().text;
  EXPECT_TRUE(writer.Finish());
}

TEST_F(FileReaderTest, AProgramThatIsNoneIsAnErrorEachTime) {
  for (const std::string& launcher : {std::string("/bin/true"), At("none")}) {
    FileReader files(launcher);
    for (int time = 0; time < 2; ++time)
      EXPECT_FALSE(files.Read(top_.get(), "file", 7).ok()) << launcher;
  }
}

}  // namespace
}  // namespace taskcell::mounts
