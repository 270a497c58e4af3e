#include "launcher/native/values.h"

#include <gtest/gtest.h>

namespace taskcell::native {
namespace {

TEST(ParseSizeTest, UnitsArePowersOf1024) {
  EXPECT_EQ(ParseSize("1").value(), 1U);
  EXPECT_EQ(ParseSize("64M").value(), uint64_t{64} << 20U);
  EXPECT_EQ(ParseSize("3K").value(), 3072U);
  EXPECT_EQ(ParseSize("1048576G").value(), uint64_t{1} << 50U);
}

TEST(ParseSizeTest, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "0", "0M", "-1", "+1", " 1", "1 ", "1.5G", "M", "1T", "1m", "1MM",
                           "1048577G", "18446744073709551615K", "99999999999999999999"})
    EXPECT_FALSE(ParseSize(text).ok()) << text;
}

TEST(ParseCpusTest, DecimalsAreThousandths) {
  EXPECT_EQ(ParseCpus("1").value(), 1000U);
  EXPECT_EQ(ParseCpus("0.5").value(), 500U);
  EXPECT_EQ(ParseCpus("0.05").value(), 50U);
  EXPECT_EQ(ParseCpus("1.25").value(), 1250U);
  EXPECT_EQ(ParseCpus("0.001").value(), 1U);
  EXPECT_EQ(ParseCpus("256").value(), 256'000U);
}

TEST(ParseCpusTest, WhatIsNoNumberOfCoresIsRefused) {
  for (const char* text : {"", ".", "1.", ".5", "0", "0.0", "0.0005", "256.001", "257", "-1", "1e3",
                           "0x1", "1.2.3", "1,5", "1. 5"})
    EXPECT_FALSE(ParseCpus(text).ok()) << text;
}

TEST(ParseDurationTest, ABareNumberIsSeconds) {
  EXPECT_EQ(ParseDuration("10").value(), 10'000U);
  EXPECT_EQ(ParseDuration("10s").value(), 10'000U);
  EXPECT_EQ(ParseDuration("250ms").value(), 250U);
  EXPECT_EQ(ParseDuration("2m").value(), 120'000U);
  EXPECT_EQ(ParseDuration("1h").value(), 3'600'000U);
}

TEST(ParseDurationTest, WhatIsNoTimeIsRefused) {
  for (const char* text : {"", "0", "0s", "s", "1d", "1.5s", "-1s", "99999999999999999999s"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
}

TEST(ParseCountTest, TheHighestIsTakenAndOneMoreIsNot) {
  EXPECT_EQ(ParseCount("10", 10).value(), 10U);
  EXPECT_FALSE(ParseCount("11", 10).ok());
  EXPECT_FALSE(ParseCount("0", 10).ok());
}

}  // namespace
}  // namespace taskcell::native
