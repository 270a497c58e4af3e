#include "launcher/sys/copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "launcher/sys/file.h"

namespace taskcell::sys {
namespace {

constexpr std::size_t kLarge = 200'000;  // more than a pipe holds, which sendfile goes through

UniqueFd FileWith(std::string_view content) {
  UniqueFd fd = MakeMemfd("from", 0).value();
  EXPECT_TRUE(WriteAll(fd.get(), content).ok());
  EXPECT_TRUE(Rewind(fd.get()).ok());
  return fd;
}

std::string ContentOf(const UniqueFd& fd) {
  EXPECT_TRUE(Rewind(fd.get()).ok());
  return ReadAll(fd.get(), 2 * kLarge).value();
}

TEST(CopyContentTest, TakesAllOfAFileOfJustTheLimit) {
  std::string content(kLarge, 'x');
  content.back() = 'y';
  UniqueFd from = FileWith(content);
  UniqueFd to = MakeMemfd("to", 0).value();
  ASSERT_TRUE(CopyContent(to.get(), from.get(), kLarge).ok());
  EXPECT_EQ(ContentOf(to), content);
}

TEST(CopyContentTest, RefusesOneByteMore) {
  UniqueFd from = FileWith(std::string(kLarge + 1, 'x'));
  UniqueFd to = MakeMemfd("to", 0).value();
  Status copied = CopyContent(to.get(), from.get(), kLarge);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().kind, Kind::kViolation);
  EXPECT_EQ(copied.error().err, EFBIG);
}

TEST(CopyContentTest, AnEmptyFileIsNoFailure) {
  UniqueFd from = FileWith("");
  UniqueFd to = MakeMemfd("to", 0).value();
  ASSERT_TRUE(CopyContent(to.get(), from.get(), 0).ok());
  EXPECT_EQ(ContentOf(to), "");
}

// The kernel does not send into a file that is open for appending (EINVAL), but writes to it.
TEST(CopyContentTest, ReadsAndWritesWhereTheKernelDoesNotSend) {
  UniqueFd from = FileWith("content");
  UniqueFd to = MakeMemfd("to", 0).value();
  ASSERT_EQ(::fcntl(to.get(), F_SETFL, O_APPEND), 0);
  ASSERT_TRUE(CopyContent(to.get(), from.get(), 7).ok());
  EXPECT_EQ(ContentOf(to), "content");
}

}  // namespace
}  // namespace taskcell::sys
