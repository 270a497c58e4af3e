#include "gateway/task/idle_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace taskcell::gateway {
namespace {

// Counts those that are there.
struct Thing {
  explicit Thing(int& there) : count(there) { ++count; }
  ~Thing() { --count; }
  Thing(const Thing&) = delete;
  Thing& operator=(const Thing&) = delete;
  int& count;
};

class IdlePoolTest : public testing::Test {
 protected:
  std::shared_ptr<Thing> Take(const std::string& key) {
    return pool_->Take(key, [this] {
      ++made_;
      return std::make_unique<Thing>(there_);
    });
  }

  int there_ = 0;
  int made_ = 0;
  std::unique_ptr<IdlePool<Thing>> pool_ = std::make_unique<IdlePool<Thing>>();
};

TEST_F(IdlePoolTest, WhatOneLetGoTheNextGetsUnderTheSameKeyAlone) {
  const Thing* first = Take("a").get();
  EXPECT_EQ(Take("a").get(), first);
  EXPECT_EQ(made_, 1);
  EXPECT_NE(Take("b").get(), first);
  EXPECT_EQ(made_, 2);
}

TEST_F(IdlePoolTest, NobodyGetsWhatIsInUse) {
  const std::shared_ptr<Thing> first = Take("a");
  EXPECT_NE(Take("a"), first);
  EXPECT_EQ(made_, 2);
}

TEST_F(IdlePoolTest, OfMoreThanMayWaitTheOneThatWaitedLongestGoes) {
  std::vector<std::shared_ptr<Thing>> used;
  for (std::size_t i = 0; i <= IdlePool<Thing>::kMaxIdle; ++i) used.push_back(Take("a"));
  const Thing* oldest = used.front().get();
  used.front().reset();
  while (!used.empty()) used.pop_back();
  EXPECT_EQ(there_, static_cast<int>(IdlePool<Thing>::kMaxIdle));
  for (std::size_t i = 0; i < IdlePool<Thing>::kMaxIdle; ++i) {
    used.push_back(Take("a"));
    EXPECT_NE(used.back().get(), oldest);
  }
  EXPECT_EQ(made_, static_cast<int>(IdlePool<Thing>::kMaxIdle) + 1);
}

TEST_F(IdlePoolTest, WhatOutlivesThePoolGoesWithItsLastOwner) {
  std::shared_ptr<Thing> left = Take("a");
  (void)Take("b");
  pool_.reset();
  EXPECT_EQ(there_, 1);
  left.reset();
  EXPECT_EQ(there_, 0);
}

}  // namespace
}  // namespace taskcell::gateway
