#include "probe/print/cgroup_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/json_value.h"
#include "tests/unit/probe/rules/good_host.h"

namespace taskcell::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

CgroupView View(GoodHost& host, const cgroup::Subject& subject = {}) {
  return ViewOf(cgroup::ReadSituation(host, subject));
}

TEST(CgroupTreeTest, ChainIsDrawnFromTheRootToTheLeaf) {
  GoodHost host;
  std::string tree = CgroupTree(View(host), {});
  EXPECT_THAT(tree, HasSubstr("memory: yes, below " + GoodHost::kScope));
  EXPECT_THAT(tree, HasSubstr("            `- t.scope"));
  EXPECT_LT(tree.find("`- user.slice"), tree.find("`- t.scope"));
  EXPECT_THAT(tree, Not(HasSubstr("^^^")));
}

TEST(CgroupTreeTest, BreakIsMarkedBelowItsLevelWithTheFile) {
  GoodHost host;
  host.Put(GoodHost::kApp + "/cgroup.subtree_control", "memory pids\n", GoodHost::kUser);
  host.Put(GoodHost::kScope + "/cgroup.controllers", "memory pids\n");
  std::string tree = CgroupTree(View(host), {});
  std::size_t app = tree.find("`- app.slice");
  std::size_t mark = tree.find("^^^ cpu: broken here");
  std::size_t scope = tree.find("`- t.scope");
  EXPECT_TRUE(app < mark && mark < scope) << tree;
  EXPECT_THAT(tree, HasSubstr("file: " + GoodHost::kApp + "/cgroup.subtree_control"));
}

TEST(CgroupTreeTest, SameCureIsSaidOnce) {
  GoodHost host;
  host.Own(GoodHost::kScope, 0);
  std::string tree = CgroupTree(View(host), {});
  EXPECT_THAT(tree, HasSubstr("^^^ memory, pids, cpu: broken here"));
}

TEST(CgroupTreeTest, AnotherSubjectHasItsOwnChain) {
  GoodHost host;
  cgroup::Subject manager;
  manager.user_manager = true;
  EXPECT_THAT(CgroupTree(View(host, manager), {}),
              HasSubstr("memory: yes, below " + GoodHost::kManager));
  cgroup::Subject path;
  path.cgroup_path = "/user.slice";
  EXPECT_THAT(CgroupTree(View(host, path), {}), HasSubstr("own cgroup /user.slice\n"));
  cgroup::Subject process;
  process.process = "77";
  EXPECT_THAT(CgroupTree(View(host, process), {}), HasSubstr("memory: unknown"));
}

TEST(CgroupTreeTest, JsonHoldsEveryLevelAndNothingRaw) {
  GoodHost host;
  host.Put(GoodHost::kScope + "/cgroup.type", "\x1b[2J\xff\n");
  JsonValue json = ParseJson(CgroupJson(View(host))).value();
  EXPECT_EQ(json.Find("chains")->items[0].Find("levels")->items.size(), 6U);
  std::string tree = CgroupTree(View(host), {});
  EXPECT_EQ(tree.find('\x1b'), tree.npos);
}

}  // namespace
}  // namespace taskcell::probe
