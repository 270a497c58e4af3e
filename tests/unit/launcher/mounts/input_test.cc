#include "launcher/mounts/input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/temp_directory.h"

namespace taskcell::mounts {
namespace {

namespace fs = std::filesystem;

class InputTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_.Put("in/file", "content");
    directory_.Put("in/tree/a", "one");
    directory_.Put("in/tree/sub/b", "two");
  }
  Status Copy(const std::vector<std::string>& names, const SnapshotBounds& bounds = {}) {
    fs::remove_all(directory_.At("target"));
    fs::create_directory(directory_.At("target"));
    UniqueFd target = sys::Open(directory_.At("target"), O_RDONLY | O_DIRECTORY).value();
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(directory_.At(name));
    return CopyInputs(paths, target.get(), bounds);
  }
  void ExpectRefused(const std::vector<std::string>& names, std::string_view why,
                     const SnapshotBounds& bounds = {}) {
    Status copied = Copy(names, bounds);
    ASSERT_FALSE(copied.ok()) << names.back();
    EXPECT_EQ(copied.error().code, "invalid_input") << names.back();
    EXPECT_NE(copied.error().text.find(why), std::string::npos) << copied.error().text;
  }
  unsigned ModeOf(const std::string& name) const {
    return static_cast<unsigned>(fs::status(directory_.At(name)).permissions());
  }

  test::TempDirectory directory_{"input"};
};

TEST_F(InputTest, FilesAndDirectoriesAreCopiedReadOnlyUnderTheirLastNames) {
  ASSERT_EQ(::chmod(directory_.At("in/file").c_str(), 04755), 0);
  Status copied = Copy({"in/file", "in/tree/"});
  ASSERT_TRUE(copied.ok()) << copied.error().text;
  EXPECT_EQ(directory_.Get("target/file"), "content");
  EXPECT_EQ(directory_.Get("target/tree/a"), "one");
  EXPECT_EQ(directory_.Get("target/tree/sub/b"), "two");
  EXPECT_EQ(ModeOf("target/file"), 0444U);
  EXPECT_EQ(ModeOf("target/tree/sub"), 0555U);
  EXPECT_EQ(ModeOf("target"), 0555U);
  directory_.Put("in/file", "changed");
  EXPECT_EQ(directory_.Get("target/file"), "content") << "a copy";
}

TEST_F(InputTest, WhatIsNoPlainFileOrDirectoryIsRefusedByName) {
  directory_.Link("file", "in/link");
  directory_.Link("/etc", "in/up/etc");
  directory_.Put("in/twice/file", "x");
  directory_.HardLink("in/twice/file", "in/twice/other");
  ASSERT_EQ(::mkfifo(directory_.At("in/fifo").c_str(), 0600), 0);
  ExpectRefused({"in/link"}, "symlink");
  ExpectRefused({"in/up"}, "up/etc");
  ExpectRefused({"in/twice/file"}, "hardlink");
  ExpectRefused({"in/twice"}, "hardlink");
  ExpectRefused({"in/fifo"}, "special");
  ExpectRefused({"in/none"}, "does not exist");
  ExpectRefused({"in/."}, "no last name");
  ExpectRefused({"in/.."}, "no last name");
  ExpectRefused({"in/file", "in/file"}, "same last name");
  EXPECT_TRUE(Copy({"in/file", "in/tree"}).ok()) << "control";
}

TEST_F(InputTest, NobodyElseMayBeAbleToExchangeAPartOfTheWay) {
  ASSERT_EQ(::chmod(directory_.At("in").c_str(), 0777), 0);
  ExpectRefused({"in/file"}, "chmod");
  ASSERT_EQ(::chmod(directory_.At("in").c_str(), 0755), 0);
  EXPECT_TRUE(Copy({"in/file"}).ok()) << "control";
}

TEST_F(InputTest, AtEachBoundItIsCopiedAndPastItRefused) {
  SnapshotBounds bounds;
  bounds.bytes = 7;
  EXPECT_TRUE(Copy({"in/file"}, bounds).ok());
  bounds.bytes = 6;
  ExpectRefused({"in/file"}, "more than 6 bytes", bounds);
  bounds = {};
  bounds.entries = 4;
  EXPECT_TRUE(Copy({"in/tree"}, bounds).ok()) << "two directories, two files";
  bounds.entries = 3;
  ExpectRefused({"in/tree"}, "more than 3 entries", bounds);
  bounds = {};
  bounds.depth = 2;
  EXPECT_TRUE(Copy({"in/tree"}, bounds).ok());
  bounds.depth = 1;
  ExpectRefused({"in/tree"}, "more than 1 levels", bounds);
  Status many = Copy(std::vector<std::string>(kMaxInputPaths + 1, "in/file"));
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().code, "invalid_input");
}

}  // namespace
}  // namespace taskcell::mounts
