#include "gateway/script/output.h"

#include <gtest/gtest.h>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

std::string Kept(std::string_view bytes, std::size_t limit, bool& truncated) {
  truncated = false;
  return KeptText(bytes, limit, truncated);
}

TEST(ScriptOutputTest, ACutFallsBetweenCharactersAndShows) {
  bool truncated = false;
  EXPECT_EQ(Kept("abc", 3, truncated), "abc");
  EXPECT_FALSE(truncated);
  EXPECT_EQ(Kept("abcd", 3, truncated), "abc\n...[truncated]");
  EXPECT_TRUE(truncated);
  EXPECT_EQ(Kept("ab\xE9\x9F\x93", 4, truncated), "ab\n...[truncated]");
  EXPECT_TRUE(truncated);
}

TEST(ScriptOutputTest, WhatIsNoUtf8BecomesReplacementCharacters) {
  bool truncated = false;
  const std::string text = Kept("a\xFF\xFEz", 100, truncated);
  EXPECT_EQ(text, "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_EQ(Kept(std::string("a\0b", 3), 100, truncated), std::string("a\0b", 3));
}

TEST(ScriptOutputTest, TheTwoStreamsAreKeptApartEachToItsBound) {
  ScriptOutput output;
  const std::string block(kMaxKeptOutput, 'o');
  EXPECT_TRUE(output.OnStdout(block));
  EXPECT_TRUE(output.OnStderr("e"));
  bool truncated = false;
  EXPECT_EQ(Kept(output.out(), kMaxKeptOutput, truncated), block);
  EXPECT_FALSE(truncated) << "exactly the bound is not cut";
  EXPECT_TRUE(output.OnStdout("x"));
  EXPECT_EQ(Kept(output.out(), kMaxKeptOutput, truncated), Text(block, kTruncated));
  EXPECT_TRUE(truncated);
  EXPECT_EQ(output.err(), "e");
}

TEST(ScriptOutputTest, AFloodEndsTheScriptAndTakesNoMemory) {
  ScriptOutput output;
  const std::string block(1U << 20U, 'x');
  for (std::size_t sent = 0; sent < kMaxScriptOutput; sent += block.size()) {
    EXPECT_TRUE(output.OnStdout(block));
    EXPECT_FALSE(output.overflowed());
  }
  EXPECT_FALSE(output.OnStderr("x")) << "one byte past the bound";
  EXPECT_TRUE(output.overflowed());
  EXPECT_EQ(output.out().size(), kMaxKeptOutput + 1);
}

}  // namespace
}  // namespace taskcell::gateway
