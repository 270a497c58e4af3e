#include "launcher/native/free_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace taskcell::native {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kFile[] = "/etc/subuid";

std::vector<std::pair<uint32_t, uint32_t>> Pairs(const std::vector<IdRange>& ranges) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (const IdRange& range : ranges) pairs.emplace_back(range.first, range.count);
  return pairs;
}

std::pair<uint32_t, uint32_t> Range(uint32_t first, uint32_t count) { return {first, count}; }

TEST(AccountIdsTest, EveryLineWithANumberCounts) {
  std::string_view passwd = "root:x:0:0::/:/bin/sh\n\nann:x:1000:1001::/:/bin/sh\nx:x:y:1::/:\nz\n";
  EXPECT_THAT(Pairs(AccountIds(passwd, 2)), ElementsAre(Range(0, 1), Range(1000, 1)));
  EXPECT_THAT(Pairs(AccountIds(passwd, 3)), ElementsAre(Range(0, 1), Range(1001, 1), Range(1, 1)));
  EXPECT_THAT(AccountIds("a:x:4294967296:1", 2), IsEmpty());
}

TEST(ForeignRangesTest, OnlyOthersClearLinesCount) {
  std::vector<ForeignRange> foreign = ForeignRanges(
      "# other:5:5\n\nagent1:1:1\n1500:2:2\nother:3:4\r\n77:5:6\nbad:x:1\nbad:1\nbad:9:0\n",
      "agent1", 1500);
  ASSERT_EQ(foreign.size(), 2U);
  EXPECT_EQ(foreign[0].owner, "other");
  EXPECT_EQ(foreign[0].ids.first, 3U);
  EXPECT_EQ(foreign[0].ids.count, 4U);
  EXPECT_EQ(foreign[1].owner, "77");
}

TEST(WithoutTest, WhatIsTakenIsCutOutOfEveryRange) {
  EXPECT_THAT(Pairs(Without({{100, 10}, {500, 5}}, {{502, 1}, {100, 1}, {104, 2}, {109, 392}})),
              ElementsAre(Range(101, 3), Range(106, 3), Range(501, 1), Range(503, 2)));
  EXPECT_THAT(Pairs(Without({{100, 10}}, {})), ElementsAre(Range(100, 10)));
  EXPECT_THAT(Without({{100, 10}}, {{90, 100}}), IsEmpty());
  EXPECT_THAT(Without({{4294967290, 5}}, {{4294967290, 6}}), IsEmpty());
}

TEST(FindFreeTest, NoCellGetsAnAccountsId) {
  const FreeIds free = FindFree({{1000, 4}}, {{1000, 1}, {1002, 1}}, {}, kFile).value();
  EXPECT_THAT(Pairs(free.ranges), ElementsAre(Range(1001, 1), Range(1003, 1)));
  EXPECT_EQ(free.shared_with, "");
}

TEST(FindFreeTest, WhereAccountsHaveAllOfThemIsARefusal) {
  Result<FreeIds> none = FindFree({{1000, 2}}, {{1000, 1}, {1001, 1}}, {}, kFile);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, kSubidsInUse);
  EXPECT_THAT(none.error().text, HasSubstr("usermod --add-subuids"));
  EXPECT_TRUE(FindFree({}, {{1000, 1}}, {}, kFile).value().ranges.empty());  // nothing granted
}

TEST(FindFreeTest, AnotherUsersIdsAreTakenOnlyWhereThereAreNoOthersAndItIsSaid) {
  const std::vector<ForeignRange> foreign = {{{300, 5}, "away"}, {{100, 8}, "other"}};
  const FreeIds some = FindFree({{100, 10}}, {}, foreign, kFile).value();
  EXPECT_THAT(Pairs(some.ranges), ElementsAre(Range(108, 2)));
  EXPECT_EQ(some.shared_with, "");
  const FreeIds all = FindFree({{100, 8}}, {{100, 1}}, foreign, kFile).value();
  EXPECT_THAT(Pairs(all.ranges), ElementsAre(Range(101, 7)));
  EXPECT_EQ(all.shared_with, "other");
}

}  // namespace
}  // namespace taskcell::native
