#include "probe/cells/cell_ids.h"

#include <gtest/gtest.h>

#include <set>

namespace taskcell::probe {
namespace {

const std::string kRun = "00000003" + std::string(24, 'a');

TEST(ChooseDaemonIdsTest, ASubordinateIdIsTakenWhereThereIsOne) {
  native::SubordinateIds subordinate{{{100000, 10}}, {{200000, 10}}};
  auto ids = ChooseDaemonIds(subordinate, 1500, 1500, kRun);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->uid, 100003U);
  EXPECT_EQ(ids->gid, 200003U);
  EXPECT_TRUE(ids->separate);
  EXPECT_EQ(ids->how, "subordinate uid 100003");
}

TEST(ChooseDaemonIdsTest, DifferentRunsGetDifferentIds) {
  native::SubordinateIds subordinate{{{100000, 65536}}, {{100000, 65536}}};
  auto first = ChooseDaemonIds(subordinate, 1500, 1500, "0000000a" + std::string(24, '0'));
  auto second = ChooseDaemonIds(subordinate, 1500, 1500, "0000000b" + std::string(24, '0'));
  EXPECT_NE(first->uid, second->uid);
}

TEST(ChooseDaemonIdsTest, WithoutBothRangesTheOwnIdsAreUsedAndNamed) {
  for (const native::SubordinateIds& subordinate :
       {native::SubordinateIds{}, native::SubordinateIds{{{100000, 10}}, {}},
        native::SubordinateIds{{}, {{100000, 10}}}}) {
    auto ids = ChooseDaemonIds(subordinate, 1500, 1501, kRun);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(ids->uid, 1500U);
    EXPECT_EQ(ids->gid, 1501U);
    EXPECT_FALSE(ids->separate);
    EXPECT_EQ(ids->how, "the gateway's own uid 1500");
  }
}

TEST(ChooseDaemonIdsTest, RootIsRefusedByUidAndByGid) {
  native::SubordinateIds subordinate{{{100000, 10}}, {{100000, 10}}};
  for (auto [uid, gid] : {std::pair{0U, 1500U}, std::pair{1500U, 0U}, std::pair{0U, 0U}}) {
    auto ids = ChooseDaemonIds(subordinate, uid, gid, kRun);
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.error().code, "container_refused");
    EXPECT_TRUE(ids.error().text.starts_with(
        "sandbox container refused: the gateway runs as root (uid or gid 0)"))
        << "the guide's bytes: " << ids.error().text;
  }
}

TEST(ChooseRootlessIdsTest, TheIdsAreSomeOfTheEnginesOwnNamespaceThatAreMapped) {
  native::SubordinateIds subordinate{{{100000, 5}, {300000, 5}}, {{200000, 10}}};
  std::set<uint32_t> seen;
  for (int run = 0; run < 16; ++run) {
    std::string id = "0000000" + std::string(1, "0123456789abcdef"[run]) + std::string(24, '0');
    auto ids = ChooseRootlessIds(subordinate, 1500, 1500, id);
    ASSERT_TRUE(ids.ok());
    EXPECT_GE(ids->uid, 1U) << "0 is the engine's user";
    EXPECT_LE(ids->uid, 10U) << "no more are mapped";
    EXPECT_GE(ids->gid, 1U);
    EXPECT_LE(ids->gid, 10U);
    EXPECT_TRUE(ids->separate);
    seen.insert(ids->uid);
  }
  EXPECT_EQ(seen.size(), 10U);
  EXPECT_EQ(ChooseRootlessIds(subordinate, 1500, 1500, kRun)->how,
            "uid 4 of the engine's own user namespace");
}

TEST(ChooseRootlessIdsTest, RootIsRefusedThereToo) {
  EXPECT_EQ(ChooseRootlessIds({}, 0, 1500, kRun).error().code, "container_refused");
  EXPECT_EQ(ChooseRootlessIds({}, 1500, 0, kRun).error().code, "container_refused");
  EXPECT_TRUE(ChooseRootlessIds({}, 1500, 1500, kRun).ok());
}

TEST(PickTest, ARunIdGivesItsFirstEightDigits) {
  EXPECT_EQ(PickOf("deadbeef" + std::string(24, '1')), 0xdeadbeefU);
}

}  // namespace
}  // namespace taskcell::probe
