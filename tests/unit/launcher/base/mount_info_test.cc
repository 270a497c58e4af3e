#include "launcher/base/mount_info.h"

#include <gtest/gtest.h>

namespace taskcell {
namespace {

TEST(MountInfoTest, OneLineIsTakenApart) {
  std::vector<MountInfoLine> lines = ParseMountInfo(
                                         "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - "
                                         "ext3 /dev/root rw,errors=continue\n")
                                         .value();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].id, 36U);
  EXPECT_EQ(lines[0].parent, 35U);
  EXPECT_EQ(lines[0].major, 98U);
  EXPECT_EQ(lines[0].minor, 0U);
  EXPECT_EQ(lines[0].root, "/mnt1");
  EXPECT_EQ(lines[0].mount_point, "/mnt2");
  EXPECT_EQ(lines[0].options, "rw,noatime");
  EXPECT_EQ(lines[0].optional_fields, (std::vector<std::string>{"master:1", "shared:2"}));
  EXPECT_EQ(lines[0].type, "ext3");
  EXPECT_EQ(lines[0].source, "/dev/root");
  EXPECT_EQ(lines[0].super_options, "rw,errors=continue");
}

TEST(MountInfoTest, OctalEscapesAreUndoneAndNothingElse) {
  std::vector<MountInfoLine> lines =
      ParseMountInfo("1 2 0:3 /a\\040b\\134\\012 /c\\9\\77\\400 rw - tmpfs  rw\n").value();
  EXPECT_EQ(lines[0].root, "/a b\\\n");
  EXPECT_EQ(lines[0].mount_point, "/c\\9\\77\\400");
  EXPECT_EQ(lines[0].source, "");
}

TEST(MountInfoTest, MalformedLinesAreRefused) {
  EXPECT_TRUE(ParseMountInfo("1 2 0:3 / /a rw - tmpfs none rw").ok());
  for (const char* line :
       {"1 2 0:3 / /a rw tmpfs none rw", "1 2 0:3 / /a rw - tmpfs none", "x 2 0:3 / /a rw - t n rw",
        "1 2 03 / /a rw - t n rw", "1 2 0:4294967296 / /a rw - t n rw", "1 2 0:3 / /a", "-"}) {
    Result<std::vector<MountInfoLine>> parsed = ParseMountInfo(line);
    ASSERT_FALSE(parsed.ok()) << line;
    EXPECT_EQ(parsed.error().kind, Kind::kViolation);
    EXPECT_NE(parsed.error().text.find(line), std::string::npos) << parsed.error().text;
  }
}

TEST(MountInfoTest, SizeHasALimit) {
  std::string line = "1 2 0:3 / /a rw - tmpfs none ";
  line.append(kMaxMountInfoBytes - line.size(), 'x');
  EXPECT_TRUE(ParseMountInfo(line).ok());
  EXPECT_FALSE(ParseMountInfo(line + "x").ok());
}

TEST(MountInfoTest, OptionsMatchWhole) {
  EXPECT_TRUE(HasMountOption("rw,ro", "ro"));
  EXPECT_FALSE(HasMountOption("rw,errors=remount-ro,root", "ro"));
}

}  // namespace
}  // namespace taskcell
