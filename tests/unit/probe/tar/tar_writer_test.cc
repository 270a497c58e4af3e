#include "probe/tar/tar_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/fixture.h"

namespace taskcell::probe {
namespace {

TEST(TarWriterTest, WritesWhatTarReads) {
  TarWriter tar;
  ASSERT_TRUE(tar.AddDirectory("a", 0755).ok());
  ASSERT_TRUE(tar.AddFile("a/empty", 0600, "").ok());
  ASSERT_TRUE(tar.AddFile("a/block", 0644, std::string(512, 'x')).ok());
  ASSERT_TRUE(tar.AddFile("a/program", 0755, "text\n").ok());
  std::string archive = std::move(tar).Finish();
  EXPECT_EQ(archive.size() % 512, 0U);
  std::string path = testing::TempDir() + "tar_writer_test.tar";
  std::ofstream(path, std::ios::binary) << archive;
  test::Outcome listed = test::Run({"tar", "--numeric-owner", "--utc", "-tvf", path});
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_EQ(listed.err, "");
  EXPECT_EQ(listed.out,
            "drwxr-xr-x 0/0               0 1970-01-01 00:00 a\n"
            "-rw------- 0/0               0 1970-01-01 00:00 a/empty\n"
            "-rw-r--r-- 0/0             512 1970-01-01 00:00 a/block\n"
            "-rwxr-xr-x 0/0               5 1970-01-01 00:00 a/program\n");
  EXPECT_EQ(test::Run({"tar", "-xOf", path, "a/program"}).out, "text\n");
  std::filesystem::remove(path);
}

TEST(TarWriterTest, PathsThatDoNotFitAreRefused) {
  TarWriter tar;
  EXPECT_TRUE(tar.AddDirectory(std::string(kMaxTarPathBytes, 'a'), 0755).ok());
  EXPECT_FALSE(tar.AddDirectory(std::string(kMaxTarPathBytes + 1, 'a'), 0755).ok());
  EXPECT_FALSE(tar.AddDirectory("", 0755).ok());
  EXPECT_FALSE(tar.AddFile("/absolute", 0644, "").ok());
  EXPECT_FALSE(tar.AddFile("a/../b", 0644, "").ok());
  TarEntry entry;
  entry.path = "device";
  entry.device_minor = 1U << 21U;
  EXPECT_FALSE(tar.Add(entry).ok());
}

}  // namespace
}  // namespace taskcell::probe
