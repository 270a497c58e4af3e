#include "probe/live/unenforced.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/probe/rules/good_host.h"

namespace taskcell::live {
namespace {

using probe::GoodHost;
using testing::HasSubstr;
using testing::Not;

std::vector<Row> Broken(const std::vector<std::string>& limits) {
  std::vector<Row> rows;
  for (const char* each : {"memory", "swap", "pids", "cpu", "files", "output"}) {
    Row row;
    row.limit = each;
    bool lost = std::find(limits.begin(), limits.end(), each) != limits.end();
    row.verdict = lost ? Verdict::kNotHeld : Verdict::kHeld;
    rows.push_back(row);
  }
  return rows;
}

cgroup::Situation OwnerOn(GoodHost& host) {
  cgroup::Subject subject;
  subject.uid = GoodHost::kUser;
  subject.user_manager = true;
  return cgroup::ReadSituation(host, subject);
}

probe::EngineInfo Rootless(const char* driver) {
  probe::EngineInfo engine;
  engine.rootless = true;
  engine.cgroup_driver = driver;
  return engine;
}

TEST(UnenforcedTest, WhatIsNoLimitOfACgroupHasNoSuchCause) {
  GoodHost host;
  EXPECT_FALSE(WhyUnenforced(Broken({}), Rootless("systemd"), OwnerOn(host)).has_value());
  EXPECT_FALSE(WhyUnenforced(Broken({"files"}), Rootless("systemd"), OwnerOn(host)).has_value());
}

TEST(UnenforcedTest, MissingDelegationIsTheCauseWithItsFix) {
  GoodHost host;
  for (const std::string& each : {GoodHost::kSlice, GoodHost::kManager, GoodHost::kApp})
    host.Cgroup(each, each == GoodHost::kSlice ? 0 : GoodHost::kUser, "memory pids", "memory pids");
  host.Put(GoodHost::kRoot + "/user.slice/cgroup.subtree_control", "memory pids\n");
  auto why = WhyUnenforced(Broken({"cpu"}), Rootless("systemd"), OwnerOn(host));
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->code, "resource_limits_unenforced");
  EXPECT_THAT(why->text, HasSubstr("the cpu limit"));
  EXPECT_THAT(why->text, HasSubstr("controller not delegated to the user manager"));
  EXPECT_THAT(why->text, HasSubstr("taskcell-probe delegate --user agent1 --apply"));
}

TEST(UnenforcedTest, OneCauseOfSeveralLimitsIsSaidOnce) {
  GoodHost host;
  auto why = WhyUnenforced(Broken({"memory", "swap", "pids"}), Rootless("cgroupfs"), OwnerOn(host));
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(why->text, HasSubstr("the memory and pids limits"));
  std::size_t first = why->text.find("cgroup driver 'cgroupfs'");
  ASSERT_NE(first, std::string::npos) << why->text;
  EXPECT_EQ(why->text.find("cgroup driver 'cgroupfs'", first + 1), std::string::npos);
  EXPECT_THAT(why->text, HasSubstr("systemctl --user start"));
}

TEST(UnenforcedTest, EngineThatCouldAndDidNotIsTheCauseItself) {
  GoodHost host;
  auto why = WhyUnenforced(Broken({"swap"}), Rootless("systemd"), OwnerOn(host));
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(why->text, HasSubstr("the memory limit"));
  EXPECT_THAT(why->text, HasSubstr("the engine did not do as asked"));
  EXPECT_THAT(why->text, Not(HasSubstr("delegate")));
}

}  // namespace
}  // namespace taskcell::live
