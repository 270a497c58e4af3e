// Delegation as root makes it and takes it back, on this host's own cgroup hierarchies.
#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launcher/base/text.h"
#include "launcher/cgroup/run_cgroup.h"
#include "launcher/sys/file.h"
#include "launcher/sys/file_tree.h"
#include "launcher/sys/privilege.h"
#include "probe/delegate/apply.h"
#include "probe/delegate/directories.h"
#include "tests/support/fixture.h"
#include "tests/support/kill_at_call.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using probe::delegate::Machine;
using probe::delegate::Plan;
using probe::delegate::Target;
using testing::HasSubstr;

std::string LineOf(const fs::path& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  return Text(path.string(), " ", info.st_mode, " ", info.st_uid, ":", info.st_gid);
}

// Everything that delegation could have touched: all cgroups but those of whoever runs the test,
// with the files by which one is delegated, and what stands in /etc and /var/lib.
std::vector<std::string> Listing() {
  std::vector<std::string> lines;
  std::error_code ignored;  // cgroups come and go
  auto add = [&](const fs::path& path) {
    std::string line = LineOf(path);
    if (!line.empty()) lines.push_back(line);
  };
  auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator each("/sys/fs/cgroup", options, ignored), end; each != end;
       each.increment(ignored)) {
    std::string name = each->path().filename();
    if (name == "process_api" || name.ends_with(".slice")) each.disable_recursion_pending();
    bool delegates = name == "cgroup.procs" || name == "cgroup.subtree_control";
    if (each->is_directory(ignored) || delegates) add(each->path());
  }
  for (const char* top : {"/etc/taskcell", "/etc/cron.d", "/var/lib/taskcell-delegate"}) {
    add(top);
    for (const fs::directory_entry& each : fs::recursive_directory_iterator(top, ignored))
      add(each.path());
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> Without(std::vector<std::string> lines, std::string_view part) {
  std::erase_if(lines, [&](const std::string& each) { return each.find(part) != each.npos; });
  return lines;
}

// The library alone, for a uid without an account.
class DelegationTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to hand cgroups over");
    machine_ = probe::delegate::OpenThisMachine().value();
    before_ = Listing();
  }
  Plan PlanNow() const {
    sys::RootedTree tree = sys::RootedTree::OpenHost().value();
    return MakePlan(probe::delegate::ReadFacts(tree, kTarget), kTarget);
  }

  const Target kTarget = {"taskcell-nobody", 64123, 64123};
  Machine machine_;
  std::vector<std::string> before_;
};

TEST_F(DelegationTest, TheUserMakesLimitedCgroupsInWhatWasHandedOver) {
  Plan plan = PlanNow();
  TASKCELL_REQUIRE(!plan.by_manager, "here the user's service manager hands cgroups over");
  ASSERT_TRUE(plan.obstacles.empty()) << plan.obstacles[0].reason;
  auto make_cgroup = [&] {
    return InChild([&] {
      UniqueFd root = sys::Open("/", O_PATH | O_DIRECTORY).value();
      for (const std::string& each : plan.supervisors)
        (void)sys::WriteControl(root.get(), each.substr(1) + "/cgroup.procs", "0");
      if (!sys::SetGroups({}).ok() || !sys::SetIds(kTarget.uid, kTarget.gid).ok()) return 2;
      auto run = cgroup::RunCgroup::Make(std::string(32, 'a'), {64U << 20U, 16, 500, 1024});
      if (!run.ok()) std::fprintf(stderr, "%s\n", run.error().text.c_str());
      return run.ok() ? 0 : 1;
    });
  };
  EXPECT_EQ(make_cgroup(), 1);  // control
  for (int i = 0; i < 2; ++i) {
    Status applied = Apply(plan, machine_);
    ASSERT_TRUE(applied.ok()) << applied.error().text;
    EXPECT_EQ(make_cgroup(), 0);
  }
  EXPECT_TRUE(PlanNow().complete());
  Result<probe::delegate::Reverted> reverted = probe::delegate::Revert(kTarget.uid, machine_);
  ASSERT_TRUE(reverted.ok()) << reverted.error().text;
  EXPECT_EQ(reverted->left, std::vector<std::string>{});
  EXPECT_EQ(Listing(), before_);
}

// On whatever the unified hierarchy of this host offers and does not hand on yet.
TEST_F(DelegationTest, ControllersAreTurnedOffAgainUnlessALimitNeedsThem) {
  std::string root = "/sys/fs/cgroup";
  if (fs::exists(root + "/unified/cgroup.controllers")) root += "/unified";
  std::ifstream offered_file(root + "/cgroup.controllers");
  std::ifstream on_file(root + "/cgroup.subtree_control");
  std::string offered(std::istreambuf_iterator<char>(offered_file), {});
  std::string on(std::istreambuf_iterator<char>(on_file), {});
  std::string free;
  for (std::string_view each : Words(offered)) {
    if (on.find(each) == on.npos) free = each;
  }
  TASKCELL_REQUIRE(!free.empty(), "every controller of the unified hierarchy is handed on already");
  probe::delegate::Change change = probe::delegate::TurnOn(root + "/cgroup.subtree_control", free);
  change.before = Look(machine_, change).value();
  ASSERT_TRUE(Make(machine_, change).ok());
  EXPECT_TRUE(IsMade(machine_, change).value());
  EXPECT_EQ(Undo(machine_, change).value(), "");
  EXPECT_FALSE(IsMade(machine_, change).value());
  EXPECT_EQ(Look(machine_, change)->text, change.before.text);
}

class DelegateProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to hand cgroups over");
    TASKCELL_REQUIRE(::access(Program("taskcell-probe").c_str(), X_OK) == 0,
                     "needs the programs where any user can execute them (fixture.sh up)");
    TASKCELL_REQUIRE(!fs::exists("/run/systemd/system"),
                     "with systemd the lab's checks do this (tests/lab/guest/test_probe.py)");
    before_ = Listing();
  }
  void TearDown() override {
    if (before_.empty()) return;
    (void)Delegate({"--revert"});
    EXPECT_EQ(Listing(), before_);
  }

  static std::vector<std::string> Command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {Program("taskcell-probe"), "delegate", "--user", kUser});
    return arguments;
  }
  static Outcome Delegate(std::vector<std::string> arguments = {}) {
    return test::Run(Command(std::move(arguments)));
  }
  // A host that is too busy to prove the cpu limit is asked again.
  static Outcome Apply(std::vector<std::string> arguments = {}) {
    constexpr int kTries = 5;
    arguments.insert(arguments.begin(), "--apply");
    Outcome outcome = Delegate(arguments);
    for (int i = 1; i < kTries && outcome.status == kCouldNotTell; ++i)
      outcome = Delegate(arguments);
    return outcome;
  }
  static Outcome Live() {
    RunOptions options;
    options.user = User{kUser, kUid, kUid, "/"};
    return test::Run({Program("taskcell-probe"), "live", "--quiet"}, options);
  }
  static std::vector<std::string> Places() {
    std::vector<std::string> places;
    std::error_code ignored;
    for (const fs::directory_entry& each : fs::directory_iterator("/sys/fs/cgroup", ignored)) {
      fs::path place = each.path() / "taskcell" / Text("uid-", kUid);
      if (fs::exists(place, ignored)) places.push_back(place);
    }
    return places;
  }

  static constexpr int kCouldNotTell = 3;
  static constexpr char kUser[] = "nobody";
  static constexpr uid_t kUid = 65534;
  std::vector<std::string> before_;
};

TEST_F(DelegateProgramTest, LimitsHoldOnceItIsAppliedAndNothingStaysOnceItIsReverted) {
  EXPECT_EQ(Live().status, 1);  // control
  EXPECT_EQ(Delegate().status, 1);
  Outcome applied = Apply();
  EXPECT_EQ(applied.status, 0) << applied.out << applied.err;
  EXPECT_THAT(applied.out, HasSubstr("all limits hold (native)"));
  EXPECT_NE(Live().status, 1);
  const std::vector<std::string> once = Listing();

  Outcome again = Apply({"--json"});
  EXPECT_EQ(again.status, 0) << again.out << again.err;
  Json report = Json::parse(again.out);
  EXPECT_TRUE(report["complete"]) << again.out;
  EXPECT_EQ(report["steps"], Json::array());
  EXPECT_EQ(report["live"]["overall"], "held");
  EXPECT_EQ(Listing(), once);
  EXPECT_EQ(Delegate().status, 0);

  Outcome reverted = Delegate({"--revert"});
  EXPECT_EQ(reverted.status, 0) << reverted.out << reverted.err;
  EXPECT_EQ(Listing(), before_);
  EXPECT_EQ(Live().status, 1);
}

TEST_F(DelegateProgramTest, ThePrintedCommandsDoTheSame) {
  Json plan = Json::parse(Delegate({"--json"}).out);
  RunOptions options;
  options.input = Delegate().out;
  Outcome pasted = test::Run({"sh", "-eu"}, options);
  ASSERT_EQ(pasted.status, 0) << pasted.err;
  const std::vector<std::string> by_hand = Listing();
  EXPECT_NE(by_hand, before_);
  EXPECT_NE(Live().status, 1);
  EXPECT_EQ(Delegate().status, 0);
  for (auto step = plan["steps"].rbegin(); step != plan["steps"].rend(); ++step) {
    const Json& commands = (*step)["undo"];
    for (auto command = commands.rbegin(); command != commands.rend(); ++command)
      (void)test::Run({"sh", "-c", *command});  // ignoring: what others use is not removed
  }
  EXPECT_EQ(Listing(), before_);
  EXPECT_EQ(Apply().status, 0);
  EXPECT_EQ(Without(Listing(), "/var/lib/taskcell-delegate"), by_hand);
}

// tests/support/delegate.sh makes the same before anything is built.
TEST_F(DelegateProgramTest, TheTestsOwnScriptHandsTheSameOver) {
  TASKCELL_REQUIRE(::access(DELEGATE_SH, X_OK) == 0, "needs the sources");
  ASSERT_EQ(test::Run({DELEGATE_SH, "up", kUser}).status, 0);
  const std::vector<std::string> by_script = Listing();
  EXPECT_EQ(test::Run({DELEGATE_SH, "down", kUser}).status, 0);
  EXPECT_EQ(Apply().status, 0);
  EXPECT_EQ(Without(Without(Listing(), "/var/lib/taskcell-delegate"), "/etc/taskcell"), by_script);
}

TEST_F(DelegateProgramTest, WhateverAKillLeavesIsUndone) {
  constexpr int kKilled = 128 + SIGKILL;
  constexpr int kEnough = 500;
  const std::vector<long> changing = {SYS_mkdirat, SYS_fchown, SYS_fchmod,   SYS_fchmodat,
                                      SYS_openat2, SYS_write,  SYS_renameat, SYS_unlinkat};
  std::vector<std::string> argv = Command({"--apply"});
  int status = kKilled;
  int nth = 0;
  while (status == kKilled && nth < kEnough) {
    status = KillAtCall(
        [&] {
          std::vector<char*> words;
          for (std::string& each : argv) words.push_back(each.data());
          words.push_back(nullptr);
          UniqueFd nothing = sys::Open("/dev/null", O_WRONLY).value();
          ::dup2(nothing.get(), STDOUT_FILENO);
          ::execv(words[0], words.data());
        },
        changing, ++nth);
    Outcome reverted = Delegate({"--revert"});
    EXPECT_EQ(reverted.status, 0) << nth << reverted.out << reverted.err;
    ASSERT_EQ(Listing(), before_) << "killed at call " << nth;
  }
  EXPECT_TRUE(status == 0 || status == kCouldNotTell) << status;
  EXPECT_GT(nth, 20);
}

TEST_F(DelegateProgramTest, AnApplyThatWasKilledCanBeDoneAgain) {
  std::vector<std::string> argv = Command({"--apply"});
  auto become = [&] {
    std::vector<char*> words;
    for (std::string& each : argv) words.push_back(each.data());
    words.push_back(nullptr);
    ::execv(words[0], words.data());
  };
  constexpr int kSecondDirectory = 3;  // after the record's
  EXPECT_EQ(KillAtCall(become, {SYS_mkdirat}, kSecondDirectory), 128 + SIGKILL);
  EXPECT_NE(Listing(), before_);
  EXPECT_EQ(Apply().status, 0);
  EXPECT_EQ(Delegate({"--revert"}).status, 0);
  EXPECT_EQ(Listing(), before_);
}

TEST_F(DelegateProgramTest, AProcessInADirectoryIsNamedAndLeftAlone) {
  ASSERT_EQ(Apply().status, 0);
  ASSERT_FALSE(Places().empty());
  const std::string cgroup = Places()[0] + "/work";
  ASSERT_EQ(::mkdir(cgroup.c_str(), 0755), 0);
  pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  std::ofstream(cgroup + "/cgroup.procs") << child << std::flush;
  Outcome reverted = Delegate({"--revert"});
  EXPECT_EQ(reverted.status, 1) << reverted.out;
  EXPECT_THAT(reverted.out, HasSubstr(Text("in use: processes ", child)));
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0);  // it lives
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_EQ(::rmdir(cgroup.c_str()), 0);
  EXPECT_EQ(Delegate({"--revert"}).status, 0);
}

TEST_F(DelegateProgramTest, OnlyRootChangesAnythingAndOnlyForAUserThatExists) {
  RunOptions options;
  options.user = User{kUser, kUid, kUid, "/"};
  Outcome refused = test::Run(Command({"--apply"}), options);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("sudo taskcell-probe delegate --user nobody --apply"));
  EXPECT_THAT(test::Run({Program("taskcell-probe"), "delegate"}, options).out,
              HasSubstr("# nobody (uid 65534)"));
  auto said = [](const std::string& user) {
    Outcome outcome = test::Run({Program("taskcell-probe"), "delegate", "--user", user, "--apply"});
    EXPECT_EQ(outcome.status, 2) << user;
    return outcome.err;
  };
  EXPECT_THAT(said("root"), HasSubstr("root needs no delegation"));
  EXPECT_THAT(said("0"), HasSubstr("root needs no delegation"));
  for (const char* user : {"no-such-user", "4294967295", "../nobody", "nobody;id", "\x1b[31m"})
    EXPECT_THAT(said(user), HasSubstr("there is no user")) << user;
  EXPECT_EQ(said("\x1b[31m").find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace taskcell::test
