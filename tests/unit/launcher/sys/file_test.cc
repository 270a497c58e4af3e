#include "launcher/sys/file.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "launcher/sys/mount_id.h"

namespace taskcell::sys {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    dir_ = Open(path_, O_RDONLY | O_DIRECTORY).value();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  int dir() const { return dir_.get(); }
  void Put(const std::string& name, std::string_view content) {
    UniqueFd fd = OpenAt2(dir(), name, O_WRONLY | O_CREAT | O_EXCL, kResolveBeneath, 0600).value();
    ASSERT_TRUE(WriteAll(fd.get(), content).ok());
  }

  std::string path_ = "/tmp/taskcell-file-test-XXXXXX";
  UniqueFd dir_;
};

TEST_F(FileTest, SymlinkIsRefusedBeneath) {
  Put("real", "x");
  ASSERT_EQ(::symlinkat("real", dir(), "link"), 0);
  Result<UniqueFd> opened = OpenAt2(dir(), "link", O_RDONLY, kResolveBeneath);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().err, ELOOP);
  EXPECT_NE(opened.error().text.find("openat2 'link' (dir fd "), std::string::npos)
      << opened.error().text;
  EXPECT_TRUE(OpenAt2(dir(), "real", O_RDONLY, kResolveBeneath).ok());
}

TEST_F(FileTest, DotDotOutOfTheDirectoryIsRefusedBeneath) {
  EXPECT_EQ(OpenAt2(dir(), "../", O_RDONLY, kResolveBeneath).error().err, EXDEV);
}

TEST_F(FileTest, TheMountOfADescriptorIsTheSameByBothWays) {
  UniqueFd proc = Open("/proc", O_PATH | O_DIRECTORY).value();
  for (int fd : {dir(), proc.get()}) EXPECT_EQ(MountIdFromProc(fd).value(), MountIdOf(fd).value());
  EXPECT_NE(MountIdOf(dir()).value(), MountIdOf(proc.get()).value());
}

TEST_F(FileTest, ALockOfWhatWasMadeAgainIsNoLockOfWhatHasItsName) {
  ASSERT_TRUE(MakeDirectory(dir(), "run", 0700).ok());
  UniqueFd first = OpenAt2(dir(), "run", O_RDONLY | O_DIRECTORY, kResolveBeneath).value();
  EXPECT_TRUE(LockNamed(first.get(), LOCK_EX, dir(), "run"));
  UniqueFd other = OpenAt2(dir(), "run", O_RDONLY | O_DIRECTORY, kResolveBeneath).value();
  EXPECT_FALSE(LockNamed(other.get(), LOCK_EX, dir(), "run"));  // it is held
  first.Reset();
  ASSERT_TRUE(RemoveDirectory(dir(), "run").ok());
  EXPECT_FALSE(LockNamed(other.get(), LOCK_EX, dir(), "run"));  // it is gone
  ASSERT_TRUE(MakeDirectory(dir(), "run", 0700).ok());
  EXPECT_FALSE(LockNamed(other.get(), LOCK_EX, dir(), "run"));  // another has its name
}

TEST_F(FileTest, PathWithNulIsRefused) {
  Result<UniqueFd> opened = OpenAt2(dir(), std::string("a\0b", 3), O_RDONLY, kResolveBeneath);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, Kind::kUsage);
}

TEST_F(FileTest, ReadFileStopsOneByteAboveItsLimit) {
  Put("four", "1234");
  EXPECT_EQ(ReadFile(dir(), "four", 4).value(), "1234");
  Result<std::string> over = ReadFile(dir(), "four", 3);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().kind, Kind::kViolation);
}

TEST_F(FileTest, ReadFileDoesNotBlockOnAFifo) {
  ASSERT_EQ(::mkfifoat(dir(), "fifo", 0600), 0);
  EXPECT_EQ(ReadFile(dir(), "fifo", 4).value(), "");
}

TEST_F(FileTest, ListDirectoryHasALimit) {
  Put("a", "");
  Put("b", "");
  EXPECT_EQ(ListDirectory(dir(), 2).value().size(), 2U);
  EXPECT_FALSE(ListDirectory(dir(), 1).ok());
}

TEST_F(FileTest, ADirectoryOfManyEntriesIsListedWholeAgainAndAgain) {
  constexpr std::size_t kEntries = 1000;  // more than one call returns
  const std::string tail(100, 'x');
  for (std::size_t i = 0; i < kEntries; ++i) Put(std::to_string(i) + tail, "");
  for (int round = 0; round < 2; ++round) {
    std::vector<DirectoryEntry> entries = ListDirectory(dir(), kEntries).value();
    EXPECT_EQ(entries.size(), kEntries);
    std::set<std::string> names;
    for (const DirectoryEntry& entry : entries) {
      names.insert(entry.name);
      EXPECT_EQ(entry.type, DT_REG);
    }
    EXPECT_EQ(names.size(), kEntries);
  }
  EXPECT_FALSE(ListDirectory(dir(), kEntries - 1).ok());
}

TEST_F(FileTest, EveryDescriptorIsCloseOnExec) {
  Put("file", "");
  UniqueFd fd = OpenAt2(dir(), "file", O_RDONLY, kResolveBeneath).value();
  Pipe pipe = MakePipe().value();
  UniqueFd copy = Duplicate(fd.get()).value();
  for (int each : {dir(), fd.get(), pipe.read_end.get(), pipe.write_end.get(), copy.get()}) {
    EXPECT_EQ(::fcntl(each, F_GETFD), FD_CLOEXEC);
  }
  ASSERT_TRUE(KeepOnExec(copy.get()).ok());
  EXPECT_EQ(::fcntl(copy.get(), F_GETFD), 0);
}

TEST_F(FileTest, WriteControlDoesNotFollowALink) {
  Put("target", "old");
  ASSERT_EQ(::symlinkat("target", dir(), "link"), 0);
  EXPECT_EQ(WriteControl(dir(), "link", "new").error().err, ELOOP);
  EXPECT_EQ(ReadFile(dir(), "target", 10).value(), "old");
}

TEST(ReadAllWithinTest, WhatNeverEndsIsGivenUpAndWhatEndsIsReadWhole) {
  Pipe pipe = MakePipe(O_NONBLOCK).value();
  ASSERT_TRUE(WriteAll(pipe.write_end.get(), "some").ok());
  Result<std::string> open_still = ReadAllWithin(pipe.read_end.get(), 10, 30);
  ASSERT_FALSE(open_still.ok());
  EXPECT_EQ(open_still.error().err, ETIMEDOUT);
  ASSERT_TRUE(WriteAll(pipe.write_end.get(), "more").ok());
  pipe.write_end.Reset();
  EXPECT_EQ(ReadAllWithin(pipe.read_end.get(), 10, -1).value(), "more");
  EXPECT_EQ(ReadAllWithin(pipe.read_end.get(), 10, 0).value(), "") << "at its end: no waiting";
}

TEST(ReadAllWithinTest, TheBoundIsTakenAndOnePastItIsRefused) {
  for (std::size_t bytes : {10U, 11U}) {
    Pipe pipe = MakePipe().value();
    ASSERT_TRUE(WriteAll(pipe.write_end.get(), std::string(bytes, 'x')).ok());
    pipe.write_end.Reset();
    Result<std::string> read = ReadAllWithin(pipe.read_end.get(), 10, 1000);
    EXPECT_EQ(read.ok() ? 0 : read.error().err, bytes == 10U ? 0 : EFBIG);
  }
}

}  // namespace
}  // namespace taskcell::sys
