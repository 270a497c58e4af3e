#include "probe/rules/subid_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace taskcell::probe {
namespace {

using testing::HasSubstr;

Assessment Assess(std::string_view subuid, std::string_view subgid) {
  SubidFacts facts;
  for (auto [seen, text] :
       {std::pair(&facts.subuid, subuid), std::pair(&facts.subgid, subgid),
        std::pair(&facts.passwd, std::string_view("svc:x:700000:700000::/:/bin/sh\n")),
        std::pair(&facts.group, std::string_view("svc:x:700000:\n"))}) {
    seen->state = sys::FileSeen::State::kPresent;
    seen->text = text;
  }
  return AssessSubids(facts, "agent1", 1500);
}

constexpr std::string_view kGood = "agent1:100000:65536\n";

TEST(AssessSubidsTest, EachStateOfTheFiles) {
  EXPECT_EQ(Assess(kGood, kGood).state, "ok");
  EXPECT_EQ(Assess("1500:200000:65536\n", "1500:200000:65536\n").state, "ok");
  EXPECT_EQ(Assess("agent1:100000:1000\nagent1:200000:64536\n", kGood).state, "ok");
  EXPECT_EQ(Assess("agent1:100000:1000\n", kGood).state, "short");
  EXPECT_EQ(Assess(kGood, "agent1:100000:1000\n").state, "short");
  EXPECT_EQ(Assess("", "").state, "none");
  EXPECT_EQ(Assess("", kGood).state, "missing_uid");
  EXPECT_EQ(Assess(kGood, "").state, "missing_gid");
  EXPECT_EQ(Assess("agent1:4294967290:65536\n", kGood).state, "overflow");
  EXPECT_EQ(Assess("agent1:1000:65536\n", kGood).state, "covers_real_users");
  EXPECT_EQ(Assess("agent1:59000:65536\n", kGood).state, "covers_real_users");
  EXPECT_EQ(Assess("agent1:690000:65536\n", kGood).state, "covers_real_users");
  EXPECT_EQ(Assess(kGood, "agent1:690000:65536\n").state, "covers_real_users");
  EXPECT_EQ(Assess("agent1:60001:65536\n", kGood).state, "ok");
}

TEST(AssessSubidsTest, OverlapNamesTheOther) {
  Assessment overlap = Assess("other:100000:65536\nagent1:165535:65536\n", kGood);
  EXPECT_EQ(overlap.state, "overlap");
  EXPECT_EQ(overlap.who, Who::kAdmin);
  EXPECT_THAT(overlap.reason, HasSubstr("'other'"));
  EXPECT_EQ(Assess("other:100000:65536\nagent1:165536:65536\n", kGood).state, "ok");
  // Another's line that says nothing is no reason to refuse this user's.
  EXPECT_EQ(Assess("other:x:65536\n#other:100000:65536\n\nagent1:100000:65536\n", kGood).state,
            "ok");
}

TEST(AssessSubidsTest, CarriageReturnIsNamedAndNotUserNotFound) {
  Assessment malformed = Assess("# comment\n\nagent1:100000:65536\r\n", kGood);
  EXPECT_EQ(malformed.state, "malformed");
  EXPECT_THAT(malformed.reason, HasSubstr("carriage return"));
}

TEST(AssessSubidsTest, MissingRangeComesWithTheCommandForAFreeOne) {
  EXPECT_EQ(
      Assess("", "").fix,
      "as administrator: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 agent1");
  EXPECT_THAT(Assess("other:300000:65536\n", "other:300000:65536\n").fix,
              HasSubstr("365536-431071"));
  EXPECT_THAT(Assess("other:4294900000:65536\n", "").fix, HasSubstr("free range"));
}

}  // namespace
}  // namespace taskcell::probe
