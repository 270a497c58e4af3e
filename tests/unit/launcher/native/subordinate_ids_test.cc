#include "launcher/native/subordinate_ids.h"

#include <gtest/gtest.h>

namespace taskcell::native {
namespace {

std::vector<IdRange> Parse(std::string_view text) {
  return ParseSubordinateIds(text, "agent1", 1500).value();
}

TEST(SubordinateIdsTest, EntriesByNameAndByNumberAreThisUsers) {
  std::vector<IdRange> ranges = Parse("# c\n\nagent1:100000:65536\nother:1:2\n1500:300000:10\n");
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].first, 100000U);
  EXPECT_EQ(ranges[0].count, 65536U);
  EXPECT_EQ(ranges[1].first, 300000U);
}

TEST(SubordinateIdsTest, OtherUsersEntriesGrantNothing) {
  EXPECT_TRUE(Parse("agent11:100000:65536\nagent:1:1\n15000:5:5\n150:5:5\nAGENT1:7:7\n").empty());
  EXPECT_TRUE(Parse("").empty());
}

TEST(SubordinateIdsTest, AUserWithoutNameMatchesByNumberOnly) {
  EXPECT_TRUE(ParseSubordinateIds(":100:5\n", "", 1500).value().empty());
}

TEST(SubordinateIdsTest, AMalformedEntryOfThisUserIsRefusedByLine) {
  for (const char* line : {"agent1:100000", "agent1:100000:65536:1", "agent1:x:1", "agent1:1:x",
                           "agent1:-1:5", "agent1:+1:5", "agent1: 1:5", "agent1:100000:0",
                           "agent1:0:10", "agent1:100000:65536\r", "agent1::", "agent1"}) {
    Result<std::vector<IdRange>> parsed =
        ParseSubordinateIds(std::string("x:1:1\n") + line + "\n", "agent1", 1500);
    ASSERT_FALSE(parsed.ok()) << line;
    EXPECT_NE(parsed.error().text.find("line 2"), std::string::npos) << parsed.error().text;
  }
}

TEST(SubordinateIdsTest, TheLastIdIsTakenAndOnePastItIsAnOverflow) {
  EXPECT_EQ(Parse("agent1:4294967290:5\n")[0].count, 5U);
  for (const char* line : {"agent1:4294967290:6", "agent1:4294967295:1", "agent1:4294967296:1",
                           "agent1:1:18446744073709551615", "agent1:18446744073709551616:1"})
    EXPECT_FALSE(ParseSubordinateIds(line, "agent1", 1500).ok()) << line;
}

TEST(PickIdTest, EveryPickIsGranted) {
  std::vector<IdRange> ranges = {{100, 2}, {500, 1}};
  EXPECT_EQ(PickId(ranges, 0), 100U);
  EXPECT_EQ(PickId(ranges, 1), 101U);
  EXPECT_EQ(PickId(ranges, 2), 500U);
  EXPECT_EQ(PickId(ranges, 3), 100U);
  EXPECT_EQ(PickId({{7, 1}}, ~uint64_t{0}), 7U);
}

}  // namespace
}  // namespace taskcell::native
