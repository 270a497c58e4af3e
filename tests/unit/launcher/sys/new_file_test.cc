#include "launcher/sys/new_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "launcher/sys/file.h"

namespace taskcell::sys {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(directory_.data()), nullptr); }
  ~NewFileTest() override { fs::remove_all(directory_); }

  std::size_t Files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  std::string directory_ = testing::TempDir() + "new-file-XXXXXX";
};

TEST_F(NewFileTest, IsWholePrivateAndAlone) {
  std::string path = directory_ + "/a";
  mode_t before = ::umask(0);
  EXPECT_TRUE(WriteNewFile(path, std::string(100000, 'x')).ok());
  (void)::umask(before);  // ignoring: the mask that was set here
  EXPECT_EQ(ReadFile(AT_FDCWD, path, 1U << 20U).value(), std::string(100000, 'x'));
  EXPECT_EQ(StatAt(AT_FDCWD, path)->st_mode, S_IFREG | 0600U);
  EXPECT_EQ(StatAt(AT_FDCWD, path)->st_nlink, 1U);
  EXPECT_EQ(Files(), 1U);
}

TEST_F(NewFileTest, WhatIsThereStaysAsItIs) {
  std::string path = directory_ + "/a";
  std::ofstream(path) << "old";
  EXPECT_EQ(WriteNewFile(path, "new").error().err, EEXIST);
  EXPECT_EQ(ReadFile(AT_FDCWD, path, 9).value(), "old");
  fs::create_symlink("nowhere", directory_ + "/link");
  EXPECT_EQ(WriteNewFile(directory_ + "/link", "new").error().err, EEXIST);
  fs::create_directory(directory_ + "/d");
  EXPECT_EQ(WriteNewFile(directory_ + "/d", "new").error().err, EEXIST);
  EXPECT_EQ(Files(), 3U);
}

TEST_F(NewFileTest, WhatNamesNoFileIsRefused) {
  EXPECT_EQ(WriteNewFile(directory_ + "/", "x").error().err, EINVAL);
  EXPECT_EQ(WriteNewFile("", "x").error().err, EINVAL);
  EXPECT_EQ(WriteNewFile(directory_ + std::string("/a\0b", 4), "x").error().err, EINVAL);
  EXPECT_EQ(WriteNewFile(directory_ + "/none/a", "x").error().err, ENOENT);
  EXPECT_EQ(Files(), 0U);
}

}  // namespace
}  // namespace taskcell::sys
