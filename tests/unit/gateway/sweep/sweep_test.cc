#include "gateway/sweep/sweep.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gateway/ledger/ledger.h"
#include "gateway/ledger/owner.h"
#include "gateway/task/run_directory.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNow = 2000000000;
constexpr char kSocket[] = "/run/a test.sock";
constexpr char kEngine[] =
    "docker at unix:///run/a test.sock (from a test; DOCKER_HOST is set too)";
using Ids = std::vector<std::string>;

std::string RunId(char digit) { return std::string(32, digit); }
std::string ContainerId(char digit) { return std::string(64, digit); }

class SweepTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    home_ = OpenHome(path_).value();
    fs::create_directories(path_ + "/sandbox/runs");
    Ledger ledger = Open();
    ASSERT_TRUE(ledger.Start(Task("t1", OwnerOfThisProcess().value())).ok());
    for (char digit : std::string("abcdef"))
      ASSERT_TRUE(ledger.StartRun({RunId(digit), "t1", kEngine, "mine", 1, 2, 0}).ok());
  }
  void TearDown() override { fs::remove_all(path_); }

  Ledger Open() { return Ledger::Open(home_.fd.get(), home_.path).value(); }
  static TaskRow Task(const std::string& id, const std::string& owner) {
    TaskRow task;
    task.id = id;
    task.owner = owner;
    return task;
  }
  // A run directory that was last touched `age_s` before kNow.
  void Directory(const std::string& name, int64_t age_s) const {
    const std::string path = path_ + "/sandbox/runs/" + name;
    fs::create_directories(path + "/gate");
    fs::permissions(path + "/gate", fs::perms(0500));
    Touch(path, age_s);
  }
  static void Touch(const std::string& path, int64_t age_s) {
    const struct timespec when = {kNow - age_s, 0};
    const struct timespec times[2] = {when, when};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  void Container(char digit, const std::string& state, const std::string& deadline,
                 std::string run = "") {
    listed_.push_back({ContainerId(digit), state, run.empty() ? RunId(digit) : run, deadline});
  }
  SweepReport Run(bool dry_run = false) {
    EngineContainers engine = Engine(kSocket);
    return Sweep(home_, &engine, {kNow, dry_run}).value();
  }
  EngineContainers Engine(const std::string& socket) {
    EngineContainers engine;
    engine.socket_path = socket;
    engine.list = [this](const std::string& label) -> Result<std::vector<probe::ListedContainer>> {
      ++lists_;
      EXPECT_EQ(label, home_.label);
      if (list_error_.has_value()) return *list_error_;
      return listed_;
    };
    engine.remove = [this](const std::string& id) -> Status {
      if (id == stubborn_) return Error(Kind::kSystem, "it will not go");
      removed_.push_back(id);
      return Ok();
    };
    return engine;
  }
  // With cells that no engine makes, or with another engine, than those of the ledger's runs.
  SweepReport RunAfterAChange(const EngineContainers* now = nullptr) {
    return Sweep(home_, now, {kNow, false},
                 [this](const std::string& socket) {
                   asked_.push_back(socket);
                   return Engine(socket);
                 })
        .value();
  }
  // Of the ledger, sorted.
  void EndRuns() {
    for (const std::string& run : UnendedRuns()) ASSERT_TRUE(Open().FinishRun(run, 2).ok());
  }
  Ids UnendedRuns() {
    Ids ids;
    const std::vector<RunRow> runs = Open().UnendedRuns().value();
    for (const RunRow& run : runs) ids.push_back(run.id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  bool HasDirectory(const std::string& name) const {
    return fs::exists(path_ + "/sandbox/runs/" + name);
  }
  std::string AuditLog() const {
    std::ifstream in(path_ + "/security_audit.jsonl");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string path_ = "/tmp/taskcell-sweep-XXXXXX";
  Home home_;
  std::vector<probe::ListedContainer> listed_;
  std::optional<Error> list_error_;
  std::string stubborn_;
  Ids removed_;
  Ids asked_;  // former engines
  int lists_ = 0;
};

TEST_F(SweepTest, AHomeThatNeverRanATaskIsLeftAloneAndNoEngineIsAsked) {
  fs::remove_all(path_ + "/sandbox");
  EndRuns();
  EXPECT_TRUE(Run().never_ran);
  EXPECT_EQ(lists_, 0);
}

// As after a task that ran on the host, and was killed with its client.
TEST_F(SweepTest, ATaskOfTheHostIsInterruptedInAHomeThatHasNoCells) {
  fs::remove_all(path_ + "/sandbox");
  EndRuns();
  ASSERT_TRUE(Open().Start(Task("t2", "1 0 another-boot")).ok());
  EXPECT_EQ(Run(true).interrupted, Ids{"t2"});
  const SweepReport report = Run();
  EXPECT_TRUE(report.never_ran);
  EXPECT_EQ(report.interrupted, Ids{"t2"});
  EXPECT_EQ(Open().Task("t2").value()->state, TaskState::kInterrupted);
  EXPECT_EQ(lists_, 0);
}

TEST_F(SweepTest, AnEngineThatIsNotConfiguredAnyMoreIsSweptToo) {
  const EngineContainers other = Engine("/run/another.sock");
  for (const EngineContainers* now : {static_cast<const EngineContainers*>(nullptr), &other}) {
    listed_.clear();
    removed_.clear();
    asked_.clear();
    Container('a', "exited", "");
    Container('b', "running", "");
    for (char digit : std::string("ab")) Directory(RunId(digit), 10000);
    ASSERT_FALSE(UnendedRuns().empty());
    const SweepReport report = RunAfterAChange(now);
    EXPECT_EQ(asked_, Ids{kSocket}) << "once";
    EXPECT_NE(std::find(removed_.begin(), removed_.end(), ContainerId('a')), removed_.end());
    EXPECT_EQ(report.directories, Ids{RunId('a')});
    EXPECT_TRUE(HasDirectory(RunId('b')));
    EXPECT_EQ(UnendedRuns(), Ids{RunId('b')}) << "the others are gone from every engine";
  }
}

TEST_F(SweepTest, WhatAFormerEngineMadeStaysWhileThatCannotBeListed) {
  ASSERT_TRUE(Open().StartRun({RunId('0'), "t1", "native", "mine", 1, 2, 0}).ok());
  for (char digit : std::string("a01")) Directory(RunId(digit), 10000);
  list_error_ = Error(Kind::kSystem, "connection refused");
  SweepReport report = RunAfterAChange();
  EXPECT_EQ(report.directories, (Ids{RunId('0'), RunId('1')})) << "no run of that engine";
  EXPECT_TRUE(HasDirectory(RunId('a')));
  EXPECT_TRUE(report.failures.empty()) << "it may be gone for good";
  ASSERT_EQ(report.notes.size(), 2U);
  EXPECT_NE(report.notes[1].find("the engine at /run/a test.sock made runs"), std::string::npos);
  EXPECT_EQ(UnendedRuns().size(), 6U);
  list_error_.reset();
  report = RunAfterAChange();
  EXPECT_EQ(report.directories, Ids{RunId('a')});
  EXPECT_TRUE(UnendedRuns().empty());
  asked_.clear();
  EXPECT_TRUE(RunAfterAChange().notes.empty());
  EXPECT_TRUE(asked_.empty()) << "nothing of it is left";
}

TEST_F(SweepTest, ContainersThatAreOverGoAndOthersStay) {
  Container('a', "exited", "");
  Container('b', "dead", "nonsense");
  Container('c', "running", std::to_string(kNow - kSweepGraceS - 1));
  Container('d', "running", std::to_string(kNow - kSweepGraceS));
  Container('e', "created", "");
  Container('f', "running", "nonsense");
  const SweepReport report = Run();
  EXPECT_EQ(report.containers, (Ids{ContainerId('a'), ContainerId('b'), ContainerId('c')}));
  EXPECT_EQ(removed_, report.containers);
  EXPECT_TRUE(report.failures.empty());
  EXPECT_EQ(AuditLog(), "");
}

TEST_F(SweepTest, PodmansStoppedIsOver) {
  Container('a', "stopped", "");
  EXPECT_EQ(Run().containers, Ids{ContainerId('a')});
}

TEST_F(SweepTest, AContainerWhoseRunTheLedgerDoesNotKnowIsNotOurs) {
  Container('a', "exited", "", RunId('9'));
  const SweepReport report = Run();
  EXPECT_TRUE(report.containers.empty());
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes[0].find("never made"), std::string::npos);
}

TEST_F(SweepTest, DirectoriesThatAreOldAndNobodysGo) {
  Directory(RunId('1'), kSweepGraceS + 1);
  Directory(RunId('2'), kSweepGraceS);
  Directory("not-a-run", kSweepGraceS + 1);
  Directory(std::string(32, 'A'), kSweepGraceS + 1);
  const SweepReport report = Run();
  EXPECT_EQ(report.directories, Ids{RunId('1')});
  EXPECT_FALSE(HasDirectory(RunId('1')));
  for (const std::string& kept : {RunId('2'), std::string("not-a-run"), std::string(32, 'A')})
    EXPECT_TRUE(HasDirectory(kept)) << kept;
}

TEST_F(SweepTest, HalfAnExportOfARunThatIsOverGoesAndNothingElseBesideIt) {
  auto part = [&](const std::string& run) { return path_ + "/exports/." + run + ".part"; };
  for (char digit : std::string("12")) {
    fs::create_directories(part(RunId(digit)));
    std::ofstream(part(RunId(digit)) + "/half") << "half";
  }
  const std::string whole = path_ + "/exports/" + RunId('3');
  fs::create_directories(whole);
  fs::create_directories(path_ + "/exports/.mine.part");
  Directory(RunId('4'), 10000);
  fs::create_directories(part(RunId('4')));
  UniqueFd held = sys::Open(path_ + "/sandbox/runs/" + RunId('4'), O_RDONLY).value();
  ASSERT_TRUE(sys::Lock(held.get(), LOCK_EX).ok());
  for (const std::string& path :
       {part(RunId('1')), part(RunId('4')), whole, path_ + "/exports/.mine.part"})
    Touch(path, kSweepGraceS + 1);
  Touch(part(RunId('2')), kSweepGraceS);
  EXPECT_EQ(Run(true).expired, Ids{"half an export of run " + RunId('1')});
  EXPECT_TRUE(fs::exists(part(RunId('1')) + "/half")) << "a dry run";
  EXPECT_EQ(Run().expired, Ids{"half an export of run " + RunId('1')});
  EXPECT_FALSE(fs::exists(part(RunId('1'))));
  for (const std::string& kept :
       {part(RunId('2')), part(RunId('4')), whole, path_ + "/exports/.mine.part"})
    EXPECT_TRUE(fs::exists(kept)) << kept;
}

// As after the clock was set forward: whoever runs it ends it in time.
TEST_F(SweepTest, AContainerPastItsDeadlineWhoseRunIsHeldStays) {
  const std::string long_ago = std::to_string(kNow - kSweepGraceS - 1);
  Container('a', "running", long_ago);
  Container('b', "running", long_ago);
  Container('c', "exited", long_ago);
  for (char digit : std::string("abc")) Directory(RunId(digit), 10000);
  UniqueFd held = sys::Open(path_ + "/sandbox/runs/" + RunId('a'), O_RDONLY).value();
  UniqueFd ended = sys::Open(path_ + "/sandbox/runs/" + RunId('c'), O_RDONLY).value();
  for (int fd : {held.get(), ended.get()}) ASSERT_TRUE(sys::Lock(fd, LOCK_EX).ok());
  SweepReport report = Run();
  EXPECT_EQ(report.containers, (Ids{ContainerId('b'), ContainerId('c')}));
  EXPECT_TRUE(HasDirectory(RunId('a')));
  held.Reset();
  report = Run();
  EXPECT_NE(std::find(report.containers.begin(), report.containers.end(), ContainerId('a')),
            report.containers.end());
}

TEST_F(SweepTest, TheDirectoryOfAContainerThatStaysIsInUse) {
  Container('a', "running", "");
  Container('b', "exited", "");
  stubborn_ = ContainerId('b');
  Directory(RunId('a'), 10000);
  Directory(RunId('b'), 10000);
  const SweepReport report = Run();
  EXPECT_TRUE(report.directories.empty());
  EXPECT_EQ(report.failures.at("container_remove_failed"), 1U);
  EXPECT_NE(
      AuditLog().find(
          R"("agent_id":"system","severity":"warning","details":{"count":1,"reason":"container_remove_failed"})"),
      std::string::npos)
      << AuditLog();
}

TEST_F(SweepTest, TheDirectoryOfARunThatIsUnderWayIsLockedAndStaysHoweverOld) {
  fs::permissions(path_ + "/sandbox", fs::perms(0700));
  fs::permissions(path_ + "/sandbox/runs", fs::perms(0700));
  {
    RunDirectory run = RunDirectory::Make(home_, RunId('3')).value();
    Touch(run.path(), 10000);
    EXPECT_TRUE(Run().directories.empty());
    EXPECT_TRUE(HasDirectory(RunId('3')));
  }
  Directory(RunId('3'), 10000);
  EXPECT_EQ(Run().directories, Ids{RunId('3')}) << "control";
}

TEST_F(SweepTest, ALinkInPlaceOfADirectoryIsNotFollowed) {
  fs::create_directories(path_ + "/precious/deep");
  fs::create_directory_symlink(path_ + "/precious", path_ + "/sandbox/runs/" + RunId('4'));
  EXPECT_TRUE(Run().directories.empty());
  EXPECT_TRUE(fs::exists(path_ + "/precious/deep"));
}

TEST_F(SweepTest, WhereTheEngineCannotBeListedNothingGoes) {
  Directory(RunId('1'), 10000);
  list_error_ = Error(Kind::kSystem, "connection refused");
  SweepReport report = Run();
  EXPECT_TRUE(report.directories.empty());
  EXPECT_TRUE(HasDirectory(RunId('1')));
  EXPECT_EQ(report.failures.at("docker_unreachable"), 1U);
  fs::permissions(path_ + "/sandbox/runs/" + RunId('1') + "/gate", fs::perms(0700));
  fs::remove_all(path_ + "/sandbox/runs/" + RunId('1'));
  EXPECT_TRUE(Run().failures.empty()) << "nothing waits to be removed, so nobody need be told";
}

TEST_F(SweepTest, OneLineThatMakesNoSenseAndNothingGoes) {
  Directory(RunId('1'), 10000);
  const std::vector<probe::ListedContainer> bad = {
      {"c0ffee", "exited", RunId('a'), ""},
      {ContainerId('a').substr(1) + "G", "exited", RunId('a'), ""},
      {ContainerId('a'), "Exited (0)", RunId('a'), ""},
      {ContainerId('a'), "", RunId('a'), ""},
      {ContainerId('a'), "exited", "../..", ""},
      {ContainerId('a'), "exited", "", ""}};
  for (const probe::ListedContainer& line : bad) {
    listed_ = {line};
    Container('b', "exited", "");
    const SweepReport report = Run();
    EXPECT_EQ(report.failures.at("list_invalid"), 1U) << line.id << line.state;
    EXPECT_TRUE(removed_.empty());
    EXPECT_TRUE(HasDirectory(RunId('1')));
  }
}

TEST_F(SweepTest, AtMostSoManyContainersGoAtOnceAndTheRestIsInUse) {
  Ledger ledger = Open();
  constexpr char kDigits[] = "0123456789abcdef";
  for (std::size_t i = 0; i <= kMaxSweptContainers; ++i) {
    const std::string tail = {kDigits[(i >> 8U) & 15U], kDigits[(i >> 4U) & 15U], kDigits[i & 15U]};
    const std::string run = std::string(29, '0') + tail;
    ASSERT_TRUE(ledger.StartRun({run, "t1", kEngine, "mine", 1, 2, 0}).ok());
    listed_.push_back({std::string(61, '0') + tail, "exited", run, ""});
  }
  const std::string last = listed_.back().run_label;
  Directory(last, 10000);
  const SweepReport report = Run();
  EXPECT_EQ(report.containers.size(), kMaxSweptContainers);
  EXPECT_TRUE(HasDirectory(last));
}

TEST_F(SweepTest, WhatAScriptsCallerLeftGoesLikeATasks) {
  ASSERT_TRUE(Open().StartRun({RunId('0'), "", kEngine, "", 1, 2, 0}).ok());
  Container('0', "running", std::to_string(kNow - 601));
  Directory(RunId('0'), 10000);
  const SweepReport report = Run();
  EXPECT_EQ(report.containers, Ids{ContainerId('0')});
  EXPECT_EQ(report.directories, Ids{RunId('0')});
}

TEST_F(SweepTest, AScriptsRunIsForgotten) {
  ASSERT_TRUE(Open().StartRun({RunId('0'), "", kEngine, "", 1, 2, 0}).ok());
  Container('0', "exited", "");
  EXPECT_EQ(Run(true).containers, Ids{ContainerId('0')});
  EXPECT_TRUE(Open().HasRun(RunId('0')).value()) << "control: only a look";
  EXPECT_EQ(Run().containers, Ids{ContainerId('0')});
  EXPECT_EQ(removed_, Ids{ContainerId('0')});
  EXPECT_FALSE(Open().HasRun(RunId('0')).value());
  EXPECT_TRUE(Open().HasRun(RunId('a')).value()) << "a task's stays, with its end";
  EXPECT_EQ(UnendedRuns(), Ids{});
}

// Nothing but a container is left of the only run, whose engine was gone when it was to be removed.
TEST_F(SweepTest, AContainerIsLookedForWhereTheRunTookItsDirectoriesAlong) {
  fs::remove_all(path_ + "/sandbox");
  Container('a', "created", "1");
  const SweepReport report = Run();
  EXPECT_FALSE(report.never_ran);
  EXPECT_EQ(report.containers, Ids{ContainerId('a')});
  EXPECT_EQ(removed_, Ids{ContainerId('a')});
}

TEST_F(SweepTest, ADryRunSaysTheSameAndChangesNothing) {
  Container('a', "exited", "");
  Directory(RunId('1'), 10000);
  ASSERT_TRUE(Open().Start(Task("t2", "1 0 another-boot")).ok());
  const SweepReport report = Run(true);
  EXPECT_EQ(report.containers, Ids{ContainerId('a')});
  EXPECT_EQ(report.directories, Ids{RunId('1')});
  EXPECT_EQ(report.interrupted, Ids{"t2"});
  EXPECT_TRUE(removed_.empty());
  EXPECT_TRUE(HasDirectory(RunId('1')));
  EXPECT_EQ(Open().Task("t2").value()->state, TaskState::kRunning);
}

TEST_F(SweepTest, ATaskWhoseProcessIsGoneIsInterruptedAndOthersAreNot) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<std::string> owner = OwnerOfThisProcess();
    Ledger ledger = Ledger::Open(home_.fd.get(), home_.path).value();
    ::_exit(owner.ok() && ledger.Start(Task("t2", owner.value())).ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(Run().interrupted, Ids{"t2"});
  const TaskRow task = Open().Task("t2").value().value();
  EXPECT_EQ(task.state, TaskState::kInterrupted);
  EXPECT_EQ(task.code, "interrupted");
  EXPECT_EQ(task.ended_ms, kNow * 1000);
  EXPECT_EQ(Open().Task("t1").value()->state, TaskState::kRunning) << "this process is alive";
  EXPECT_TRUE(Run().interrupted.empty());
}

TEST(OwnerTest, AProcessIsToldFromEveryOther) {
  const std::string own = OwnerOfThisProcess().value();
  EXPECT_TRUE(IsOwnerAlive(own));
  const std::size_t first = own.find(' ');
  const std::size_t second = own.find(' ', first + 1);
  EXPECT_FALSE(IsOwnerAlive(own.substr(0, first) + " 1" + own.substr(second)))
      << "the same pid, started at another time";
  EXPECT_FALSE(IsOwnerAlive(own.substr(0, second) + " another-boot"));
  EXPECT_FALSE(IsOwnerAlive("2147483000" + own.substr(first)));
  for (const char* nonsense : {"", "x", "1 2", "a b c", "1 2 3 4"})
    EXPECT_TRUE(IsOwnerAlive(nonsense)) << "what cannot be judged is left alone: " << nonsense;
}

}  // namespace
}  // namespace taskcell::gateway
