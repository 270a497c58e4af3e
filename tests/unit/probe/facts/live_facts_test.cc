#include "probe/facts/live_facts.h"

#include <gtest/gtest.h>

namespace taskcell::probe {
namespace {

TEST(LiveFactsTest, SurviveTheTripThroughJson) {
  LiveFacts facts;
  facts.trials.push_back({"openat2", Outcome::kForbidden, 38, "openat2"});
  facts.trials.push_back({"landlock", Outcome::kWorks, 0, "ABI 7"});
  facts.sockets.push_back({"/run/docker.sock", 13});
  facts.spaces.push_back({"/home/a\x1b", 1000, 10});
  facts.engine_socket = "/run/docker.sock";
  facts.engine_source = "the default";
  facts.runtime_directory = "/run/user/1500";
  facts.unix_time_s = 1'700'000'000;
  facts.max_tasks = ~uint64_t{0};
  facts.own_tasks = 12;
  LiveFacts read = ParseLiveFacts(ToJson(facts)).value();
  EXPECT_EQ(ToJson(read), ToJson(facts));
  ASSERT_NE(read.Find("landlock"), nullptr);
  EXPECT_EQ(read.Find("landlock")->detail, "ABI 7");
  EXPECT_EQ(read.Find("nothing"), nullptr);
}

TEST(LiveFactsTest, WhatIsNoSuchTextIsRefusedOrEmpty) {
  EXPECT_FALSE(ParseLiveFacts("[]").ok());
  EXPECT_FALSE(ParseLiveFacts("{\"trials\":").ok());
  LiveFacts facts =
      ParseLiveFacts(R"({"trials":[{"feature":"x","outcome":"?","errno":99999}]})").value();
  EXPECT_EQ(facts.trials[0].outcome, Outcome::kUnknown);
  EXPECT_EQ(facts.trials[0].err, 4095);
  EXPECT_TRUE(ParseLiveFacts(R"({"trials":7,"sockets":null})").value().trials.empty());
}

}  // namespace
}  // namespace taskcell::probe
