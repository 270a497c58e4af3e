#include "launcher/mounts/link_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace taskcell::mounts {
namespace {

TEST(LinkTableTest, ASetIsOpenUntilItsLastNameIsMet) {
  LinkTable table(10);
  uint64_t key = LinkKey(1, 2, 3);
  EXPECT_FALSE(table.IsOpen(key));
  for (int name = 0; name < 3; ++name) {
    table.Meet(key, 3);
    EXPECT_EQ(table.IsOpen(key), name < 2);
  }
  EXPECT_EQ(table.open_inodes(), 0U);
}

TEST(LinkTableTest, TheSameInodeNumberOnAnotherDeviceIsAnotherInode) {
  EXPECT_NE(LinkKey(1, 2, 3), LinkKey(2, 2, 3));
  EXPECT_NE(LinkKey(1, 2, 3), LinkKey(1, 3, 3));
  EXPECT_NE(LinkKey(1, 2, 3), LinkKey(1, 2, 4)) << "nobody can choose inodes that collide";
}

TEST(LinkTableTest, TheBoundIsOnInodesThatAreOpenAtATime) {
  LinkTable table(100);
  for (uint64_t inode = 0; inode < 1000; ++inode) {  // closed at once
    table.Meet(LinkKey(1, inode, 7), 2);
    table.Meet(LinkKey(1, inode, 7), 2);
  }
  for (uint64_t inode = 0; inode < 100; ++inode) table.Meet(LinkKey(1, inode, 7), 2);
  EXPECT_FALSE(table.is_over());
  EXPECT_FALSE(table.IsOpen(LinkKey(1, 100, 7)));
  table.Meet(LinkKey(1, 100, 7), 2);
  EXPECT_TRUE(table.is_over());
  EXPECT_TRUE(table.IsOpen(LinkKey(1, 500, 7))) << "nothing is known any more";
}

// Against a plain map, with sets that open and close in any order.
TEST(LinkTableTest, AgreesWithAMapWhateverTheOrder) {
  std::mt19937_64 random(5);
  for (uint64_t round = 0; round < 50; ++round) {
    constexpr std::size_t kInodes = 300;
    LinkTable table(kInodes);
    std::vector<uint64_t> names;
    std::map<uint64_t, uint32_t> links;
    for (uint64_t inode = 0; inode < kInodes; ++inode) {
      uint64_t key = LinkKey(1, inode, round);
      links[key] = 2 + static_cast<uint32_t>(random() % 5);
      uint64_t inside = random() % (links[key] + 1);
      names.insert(names.end(), inside, key);
    }
    std::shuffle(names.begin(), names.end(), random);
    std::map<uint64_t, uint32_t> met;
    for (uint64_t key : names) {
      table.Meet(key, links[key]);
      ++met[key];
    }
    EXPECT_FALSE(table.is_over());
    for (const auto& [key, count] : links)
      EXPECT_EQ(table.IsOpen(key), met[key] > 0 && met[key] < count);
  }
}

}  // namespace
}  // namespace taskcell::mounts
