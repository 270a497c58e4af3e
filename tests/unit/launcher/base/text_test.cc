#include "launcher/base/text.h"

#include <gtest/gtest.h>

#include "launcher/base/printable_message.h"

namespace taskcell {
namespace {

TEST(ParseUnsignedTest, OnlyWholeDecimalNumbersAreTaken) {
  EXPECT_EQ(ParseUnsigned("0"), 0U);
  EXPECT_EQ(ParseUnsigned("18446744073709551615"), ~uint64_t{0});
  for (const char* bad :
       {"", "18446744073709551616", "+1", "-1", " 1", "1 ", "0x1", "1k", "99999999999999999999"}) {
    EXPECT_FALSE(ParseUnsigned(bad).has_value()) << bad;
  }
}

TEST(ParseHexTest, OneToSixteenDigitsAreTaken) {
  EXPECT_EQ(ParseHex("0"), 0U);
  EXPECT_EQ(ParseHex("1aF"), 0x1afU);
  EXPECT_EQ(ParseHex("ffffffffffffffff"), ~uint64_t{0});
  for (const char* bad : {"", "10000000000000000", "0x1", "+1", " 1", "1 ", "g"}) {
    EXPECT_FALSE(ParseHex(bad).has_value()) << bad;
  }
}

TEST(PrintableTest, ControlBytesAndBadUtf8AreEscapedWithoutLoss) {
  EXPECT_EQ(Printable("a\nb\t\\"), "a\\nb\\t\\\\");
  EXPECT_EQ(Printable("\x1b]0;x\x07"), "\\x1b]0;x\\x07");
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(Printable("caf\xc3\xa9 \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xf0\x9f\x98\x80");
}

// However often, so that whoever quotes and whoever prints need not know of each other.
TEST(PrintableTest, AMessageIsEscapedOnceAndItsBackslashesStay) {
  for (const char* hostile :
       {"a\nb\tc", "\x1b]0;x\x07\r", "\xff\xfe\xc2", "\xc2\x9b 31m", "\x7f"}) {
    std::string once = PrintableMessage(hostile);
    EXPECT_EQ(once, Printable(hostile));
    EXPECT_EQ(PrintableMessage(once), once);
  }
  EXPECT_EQ(PrintableMessage("'\\x1b' caf\xc3\xa9"), "'\\x1b' caf\xc3\xa9");
}

TEST(ShellWordTest, WhatMeansSomethingToAShellIsQuoted) {
  EXPECT_EQ(ShellWord("/sys/fs/cgroup/user@1500.service"), "/sys/fs/cgroup/user@1500.service");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b$(reboot)`x`"), "'a b$(reboot)`x`'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("x\x1b[2J'\\"), "$'x\\x1b[2J\\x27\\x5c'");
}

TEST(IsUtf8Test, SurrogatesOverlongAndTruncatedAreRefused) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("\xed\x9f\xbf\xf4\x8f\xbf\xbf"));
  for (const char* bad :
       {"\xed\xa0\x80", "\xc0\x80", "\xe0\x80\x80", "\xf4\x90\x80\x80", "\xc3", "\x80"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(SplitTest, EmptyPartsAreKept) {
  EXPECT_EQ(Split("a::b:", ':'), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(Split("", ':'), (std::vector<std::string_view>{""}));
}

TEST(WordsTest, RunsOfSpaceSeparate) {
  EXPECT_EQ(Words("  memory\tpids \n"), (std::vector<std::string_view>{"memory", "pids"}));
}

TEST(TextTest, LowerTouchesOnlyAsciiLetters) {
  EXPECT_EQ(Lower("AZ az 09 \u00c9[@`{"), "az az 09 \u00c9[@`{");
}

}  // namespace
}  // namespace taskcell
