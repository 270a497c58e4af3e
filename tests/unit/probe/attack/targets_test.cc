#include "probe/attack/targets.h"

#include <gtest/gtest.h>

namespace taskcell::attack {
namespace {

TEST(TargetsTest, EveryWordComesBack) {
  Targets targets;
  targets.scratch = "/a=b";
  targets.secret = "/s";
  targets.port = 65535;
  targets.victim_address = ~uint64_t{0};
  targets.pids = 7;
  Targets back;
  for (const std::string& word : TargetWords(targets)) {
    Status parsed = ParseTarget(word, back);
    ASSERT_TRUE(parsed.ok()) << parsed.error().text;
  }
  EXPECT_EQ(TargetWords(back), TargetWords(targets));
  EXPECT_EQ(back.scratch, "/a=b");
  EXPECT_EQ(back.victim_address, ~uint64_t{0});
}

TEST(TargetsTest, WhatNamesNoTargetIsUsage) {
  Targets targets;
  for (const char* word :
       {"", "=", "nothing=1", "port", "port=", "port=x", "port=-1", "port=18446744073709551616"}) {
    Status parsed = ParseTarget(word, targets);
    ASSERT_FALSE(parsed.ok()) << word;
    EXPECT_EQ(parsed.error().kind, Kind::kUsage);
  }
  EXPECT_EQ(targets.port, 0U);
}

}  // namespace
}  // namespace taskcell::attack
