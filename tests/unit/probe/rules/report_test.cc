#include "probe/rules/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/print/print.h"
#include "probe/rules/topics.h"
#include "tests/unit/probe/rules/archived_host.h"

namespace taskcell::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ReportTest, GoodHostIsReady) {
  ArchivedHost host;
  Report report = host.Report();
  EXPECT_EQ(report.verdict, Verdict::kReady) << TableOf(report, {});
  EXPECT_EQ(report.Headline(), "ready");
  EXPECT_EQ(report.userns.state, "yes");
  EXPECT_EQ(report.subids.state, "ok");
}

TEST(ReportTest, EveryRowHasItsTopic) {
  ArchivedHost host;
  for (const Finding& finding : host.Report().findings)
    EXPECT_NE(FindTopic(finding.id), nullptr) << finding.id;
}

TEST(ReportTest, MissingLimitsAreInTheHeadline) {
  ArchivedHost host;
  host.Put(GoodHost::kScope + "/cgroup.controllers", "memory pids\n");
  host.Put(GoodHost::kApp + "/cgroup.subtree_control", "memory pids\n", GoodHost::kUser);
  Report report = host.Report();
  EXPECT_EQ(report.Headline(), "ready with limits missing: cpu");
  EXPECT_EQ(report.verdict, Verdict::kLimited);
  host.Own(GoodHost::kScope, 0);
  report = host.Report();
  EXPECT_EQ(report.verdict, Verdict::kNot);
  EXPECT_THAT(report.Headline(), HasSubstr("not ready: own cgroup is not delegated"));
}

TEST(ReportTest, UnknownIsSaidAndKnownBadWins) {
  ArchivedHost host;
  host.Forbid(GoodHost::kScope + "/cgroup.controllers", 13);
  EXPECT_THAT(host.Report().Headline(), HasSubstr("could not tell: "));
  host.Put("/proc/sys/user/max_user_namespaces", "0\n");
  EXPECT_THAT(host.Report().Headline(), HasSubstr("not ready: user namespaces are switched off"));
}

TEST(ReportTest, UnknownIsNotHiddenByAMissingLimit) {
  ArchivedHost host;
  host.Put(GoodHost::kScope + "/cgroup.controllers", "memory pids\n");
  host.Put(GoodHost::kApp + "/cgroup.subtree_control", "memory pids\n", GoodHost::kUser);
  host.Remove("/proc/sys/user/max_user_namespaces");
  Report report = host.Report();
  ASSERT_EQ(report.userns.state, "unknown");
  EXPECT_EQ(report.verdict, Verdict::kLimited);
  EXPECT_EQ(report.Headline(), "could not tell: " + report.userns.reason + "; limits missing: cpu");
}

// E34: the limit of zero that the kernel reports as a full disk.
TEST(UsernsTest, SwitchedOffIsTheAdministrators) {
  ArchivedHost host;
  host.Put("/proc/sys/user/max_user_namespaces", "0\n");
  Report report = host.Report();
  EXPECT_EQ(report.userns.state, "no");
  EXPECT_EQ(report.userns.who, Who::kAdmin);
  EXPECT_THAT(report.userns.fix, HasSubstr("user.max_user_namespaces=15000"));
  host.Put("/proc/sys/user/max_user_namespaces", "60000\n");
  host.Put("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
  report = host.Report();
  EXPECT_EQ(report.userns.state, "no");
  EXPECT_THAT(report.userns.fix, HasSubstr("unprivileged_userns_clone=1"));
}

// E33: the profile comes before the sysctl that opens it for all.
TEST(UsernsTest, AppArmorRestrictionAsksForAProfileFirst) {
  ArchivedHost host;
  host.Put("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  host.Put("/proc/self/attr/current", "unconfined\n");
  Report report = host.Report();
  EXPECT_EQ(report.userns.state, "restricted");
  EXPECT_EQ(report.userns.who, Who::kAdmin);
  EXPECT_LT(report.userns.fix.find("/etc/apparmor.d/taskcell"),
            report.userns.fix.find("sysctl -w"));
  EXPECT_EQ(report.verdict, Verdict::kNot);
}

TEST(UsernsTest, WhatCannotBeReadOrOnlyBeTriedIsUnknown) {
  ArchivedHost host;
  host.Forbid("/proc/sys/user/max_user_namespaces", 13);
  EXPECT_EQ(host.Report().userns.state, "unknown");
  host.Put("/proc/sys/user/max_user_namespaces", "many\n");
  EXPECT_EQ(host.Report().userns.state, "unknown");
  host.Put("/proc/sys/user/max_user_namespaces", "100\n");
  host.Put("/proc/self/status", "Uid:\t1500\t1500\t1500\t1500\nSeccomp:\t2\n");
  EXPECT_EQ(host.Report().userns.state, "unknown");
}

TEST(JsonTest, IsOneObjectWithTheFieldsOfTheContract) {
  ArchivedHost host;
  host.Put(GoodHost::kScope + "/memory.max", "1073741824\n");
  JsonValue json = ParseJson(JsonOf(host.Report())).value();
  EXPECT_EQ(json.String("hierarchy"), "v2");
  EXPECT_EQ(json.String("overall"), "enforceable");
  const JsonValue& limits = *json.Find("limits");
  EXPECT_EQ(limits.keys, (std::vector<std::string>{"memory", "pids", "cpu"}));
  EXPECT_EQ(limits.items[0].Unsigned("outer_limit"), 1073741824U);
  EXPECT_EQ(limits.items[1].Find("outer_limit")->kind, JsonKind::kNull);
  for (const char* key : {"state", "reason", "who", "fix"}) {
    EXPECT_NE(limits.items[2].Find(key), nullptr) << key;
    EXPECT_NE(json.Find("userns")->Find(key), nullptr) << key;
    EXPECT_NE(json.Find("subids")->Find(key), nullptr) << key;
  }
}

TEST(TableTest, NothingOfTheHostReachesTheTerminalRaw) {
  GoodHost host;  // an archive shows less of the line of /etc/subuid
  const std::string evil = "\x1b]0;owned\x07\xff";
  host.Put("/etc/subuid", "agent1:" + evil + ":1\n");
  host.Put(GoodHost::kScope + "/cgroup.type", evil + "\n");
  host.Put("/proc/sys/user/max_user_namespaces", evil + "\n");
  Report report = host.Report();
  std::string table = TableOf(report, {});
  EXPECT_EQ(table.find('\x1b'), table.npos) << table;
  EXPECT_EQ(table.find('\xff'), table.npos);
  EXPECT_TRUE(ParseJson(JsonOf(report)).ok());
}

TEST(TableTest, VerdictIsFirstAndCommandsStayWhole) {
  ArchivedHost host;
  host.Put("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  Report report = host.Report();
  std::string table = TableOf(report, {false, 80});
  EXPECT_TRUE(table.starts_with("not ready: "));
  EXPECT_THAT(table, HasSubstr(report.userns.fix + "\n"));
  EXPECT_THAT(table, Not(HasSubstr("\x1b")));
  EXPECT_THAT(TableOf(report, {true, 80}), HasSubstr("\x1b[31mnot"));
}

std::size_t Count(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TableTest, RepeatedFixPointsToWhereItStands) {
  ArchivedHost host;
  host.Own(GoodHost::kScope, 0);
  std::string table = TableOf(host.Report(), {});
  EXPECT_EQ(Count(table, "as for limits.memory\n"), 2U) << table;
  EXPECT_EQ(Count(table, "as for limits."), 2U) << table;
}

TEST(TableTest, EveryPieceOfEvidenceSaysSomething) {
  ArchivedHost host;
  host.Own(GoodHost::kScope, 0);
  host.Put(GoodHost::kApp + "/cgroup.subtree_control", "", GoodHost::kUser);
  host.Cgroup(GoodHost::kScope, 0, "", "");
  std::string table = TableOf(host.Report(), {false, 400});
  EXPECT_THAT(table, HasSubstr("cgroup.subtree_control: (empty)\n")) << table;
  EXPECT_THAT(table, Not(HasSubstr(":\n"))) << table;
}

TEST(TopicsTest, ManualHasExactlyTheRows) {
  std::string page = sys::ReadFile(AT_FDCWD, TASKCELL_MANUAL, 1U << 20U).value();
  std::size_t start = page.find(".Sh ROWS");
  std::string_view section = std::string_view(page).substr(start, page.find(".Sh JSON") - start);
  std::vector<std::string> in_page;
  for (std::string_view line : Split(section, '\n')) {
    if (line.starts_with(".It Li ")) in_page.emplace_back(line.substr(7));
  }
  std::vector<std::string> in_table;
  for (const Topic& topic : AllTopics()) in_table.emplace_back(topic.id);
  EXPECT_EQ(in_page, in_table);
}

TEST(TopicsTest, IdsAreUniqueAndEveryTextIsThere) {
  for (const Topic& topic : AllTopics()) {
    EXPECT_EQ(FindTopic(topic.id), &topic);
    for (std::string_view text : {topic.title, topic.why, topic.how, topic.reference})
      EXPECT_FALSE(text.empty());
    EXPECT_THAT(ExplanationOf(topic), HasSubstr(std::string(topic.why)));
  }
  EXPECT_EQ(FindTopic("nothing"), nullptr);
}

}  // namespace
}  // namespace taskcell::probe
