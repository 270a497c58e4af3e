#include "launcher/sys/file_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace taskcell::sys {
namespace {

class FileTreeTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(path_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(path_); }

  void Put(const std::string& name, std::string_view content) {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << content;
  }
  RootedTree Open() { return RootedTree::OpenDirectory(path_).value(); }

  std::string path_ = "/tmp/taskcell-tree-test-XXXXXX";
};

TEST_F(FileTreeTest, FilesAreReadWithTheirOwners) {
  Put("etc/a", "text");
  RootedTree tree = Open();
  FileSeen seen = tree.Read("/etc/a", 4);
  EXPECT_TRUE(seen.present());
  EXPECT_EQ(seen.text, "text");
  EXPECT_TRUE(seen.owner_known);
  EXPECT_EQ(seen.uid, ::geteuid());
  EXPECT_TRUE(seen.IsKind(S_IFREG));
  EXPECT_EQ(seen.device, 0U);  // of a fixture it means nothing
  EXPECT_TRUE(tree.Read("/etc/none", 4).absent());
  EXPECT_TRUE(tree.Read("/etc/a/below", 4).absent());
}

TEST_F(FileTreeTest, BoundIsExact) {
  Put("a", "1234");
  RootedTree tree = Open();
  EXPECT_TRUE(tree.Read("/a", 4).present());
  FileSeen more = tree.Read("/a", 3);
  EXPECT_EQ(more.state, FileSeen::State::kUnreadable);
  EXPECT_EQ(more.err, EFBIG);
}

TEST_F(FileTreeTest, LinksStayInside) {
  Put("etc/passwd", "inside");
  ASSERT_EQ(::symlink("/etc/passwd", (path_ + "/absolute").c_str()), 0);
  ASSERT_EQ(::symlink("../../../etc/passwd", (path_ + "/relative").c_str()), 0);
  RootedTree tree = Open();
  EXPECT_EQ(tree.Read("/absolute", 64).text, "inside");
  EXPECT_EQ(tree.Read("/relative", 64).text, "inside");
  EXPECT_EQ(tree.Read("/../../etc/passwd", 64).text, "inside");
  EXPECT_EQ(tree.ReadLink("/absolute").value(), "/etc/passwd");
}

TEST_F(FileTreeTest, WhatIsNoFileIsNamedAndNeverOpened) {
  std::string fifo = path_ + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Put("d/x", "");
  RootedTree tree = Open();
  EXPECT_EQ(tree.Read("/fifo", 64).err, EINVAL);
  EXPECT_EQ(tree.Read("/d", 64).err, EISDIR);
  EXPECT_TRUE(tree.Look("/fifo").IsKind(S_IFIFO));
  EXPECT_EQ(tree.List("/d", 8).value().size(), 1U);
  EXPECT_EQ(tree.List("/none", 8).error().err, ENOENT);
}

TEST(HostTreeTest, ReadsThisHost) {
  RootedTree tree = RootedTree::OpenHost().value();
  FileSeen cgroup = tree.Read("/proc/self/cgroup", 1U << 20U);
  EXPECT_TRUE(cgroup.present());
  EXPECT_NE(cgroup.device, 0U);
  EXPECT_FALSE(tree.ReadLink("/proc/self/ns/user").value().empty());
}

}  // namespace
}  // namespace taskcell::sys
