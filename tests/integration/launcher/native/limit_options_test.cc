// Where limits are made, and which may be weaker: --cgroup-parent, --allow-missing, --oom-group.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "launcher/base/text.h"
#include "launcher/cgroup/layout.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A cgroup for the test user below the delegated one, on every hierarchy, and again without
// processor time.
class LimitOptionsTest : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    layout_ = cgroup::ReadLayout().value();
  }
  void TearDown() override {
    for (const std::string& directory : made_) {
      EXPECT_TRUE(fs::is_directory(directory)) << directory;
      for (const char* below : {"/inner", ""}) EXPECT_EQ(::rmdir((directory + below).c_str()), 0);
    }
    LaunchTest::TearDown();
  }

  static std::string DelegatedTo(uid_t uid) { return Text("/taskcell/uid-", uid); }
  std::string parent() const { return DelegatedTo(user_->uid) + "/jobs/inner"; }

  void MakeParent(bool with_cpu) {
    for (cgroup::Controller controller : cgroup::kControllers) {
      const cgroup::Hierarchy* hierarchy = layout_.Find(controller);
      ASSERT_NE(hierarchy, nullptr);
      std::string base = hierarchy->mount_point + DelegatedTo(user_->uid);
      if (hierarchy->unified) {
        if (made_.empty()) MakeUnified(base, with_cpu);
      } else if (with_cpu || controller != cgroup::Controller::kCpu) {
        Make(base + "/jobs");
        Make(base + "/jobs/inner");
        made_.push_back(base + "/jobs");
      }
    }
  }

  // How `report` shows the limits.
  std::string Report() const {
    std::ifstream file(scratch_ + "/report.json");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Outcome LaunchBelow(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {"--cgroup-parent=" + parent(), "--report=" + scratch_ + "/report.json"});
    arguments.insert(arguments.end(), {"--", "/bin/cat", "/proc/self/cgroup"});
    return Launch(arguments);
  }

  cgroup::Layout layout_;

 private:
  void Make(const std::string& directory) const {
    ASSERT_EQ(::mkdir(directory.c_str(), 0755), 0) << directory;
    ASSERT_EQ(::chown(directory.c_str(), user_->uid, user_->gid), 0);
  }
  void MakeUnified(const std::string& base, bool with_cpu) {
    std::ofstream(base + "/cgroup.subtree_control") << "+memory +pids +cpu";
    Make(base + "/jobs");
    std::ofstream(base + "/jobs/cgroup.subtree_control")
        << (with_cpu ? "+memory +pids +cpu" : "+memory +pids");
    Make(base + "/jobs/inner");
    for (const char* file : {"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"}) {
      std::string path = base + "/jobs/inner/" + file;
      ASSERT_EQ(::chown(path.c_str(), user_->uid, user_->gid), 0);
    }
    made_.push_back(base + "/jobs");
  }

  std::vector<std::string> made_;
};

TEST_F(LimitOptionsTest, ACellIsMadeBelowTheCgroupThatWasChosen) {
  MakeParent(true);
  Outcome ran = LaunchBelow({});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(Report(), HasSubstr(R"("cpu_millis":1000)"));
}

TEST_F(LimitOptionsTest, AChosenCgroupOfAnotherIsRefused) {
  Outcome ran = Launch({"--cgroup-parent=/taskcell", "--", "/bin/true"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("resource_limits_unenforced"), HasSubstr("/taskcell'"),
                             HasSubstr("it belongs to uid 0")));
}

TEST_F(LimitOptionsTest, OneThatIsNotThereOrLeadsOutsideIsRefused) {
  for (const char* bad : {"/no/such/cgroup", "/taskcell/../..", "relative", "/", ""}) {
    Outcome ran = Launch({Text("--cgroup-parent=", bad), "--", "/bin/true"});
    EXPECT_EQ(ran.status, 125) << bad;
    EXPECT_THAT(ran.err, HasSubstr("cgroup")) << bad;
  }
}

TEST_F(LimitOptionsTest, AMissingControllerIsDoneWithoutOnlyWhenThatIsAllowed) {
  MakeParent(false);
  Outcome refused = LaunchBelow({});
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("resource_limits_unenforced"), HasSubstr("cpu")));
  Outcome ran = LaunchBelow({"--allow-missing=cpu"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(Report(), AllOf(HasSubstr(R"("cpu_millis":null)"), HasSubstr(R"("pids":128)")));
}

TEST_F(LimitOptionsTest, WhatIsThereIsLimitedAllTheSame) {
  MakeParent(true);
  Outcome ran = LaunchBelow({"--allow-missing=cpu"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(Report(), HasSubstr(R"("cpu_millis":1000)"));
}

TEST_F(LimitOptionsTest, NothingElseCanBeDoneWithout) {
  Outcome ran = Launch({"--allow-missing=memory", "--", "/bin/true"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("only the cpu limit"));
}

// A shell outlives its greedy child, but not where the whole cell is killed.
TEST_F(LimitOptionsTest, TheWholeCellIsKilledForMemoryWhereThatIsAsked) {
  std::vector<std::string> rest = {"--memory=64M", "--", "/bin/sh", "-c",
                                   "head -c 200M /dev/zero | tail >/dev/null; echo alive"};
  EXPECT_THAT(Launch(rest).out, HasSubstr("alive")) << "control";
  rest.insert(rest.begin(), "--oom-group");
  rest.insert(rest.begin(), "--report=" + scratch_ + "/report");
  Outcome ran = Launch(rest);
  EXPECT_THAT(ran.out, Not(HasSubstr("alive")));
  if (layout_.Find(cgroup::Controller::kMemory)->unified) {
    EXPECT_EQ(ran.status, 128 + SIGKILL) << ran.err;
    std::ifstream file(scratch_ + "/report");
    const std::string report(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(report, AllOf(HasSubstr("\"oom_kills\":"), Not(HasSubstr("\"error\""))));
  } else {
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.err, HasSubstr("v1 has no memory.oom.group"));
  }
}

}  // namespace
}  // namespace taskcell::test
