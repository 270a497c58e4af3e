// The guard that every test of cells ends with must see what it is there for.
#include "tests/support/host_guard.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "launcher/base/text.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"
#include "tests/support/fake_engine.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kNotLong{200};

bool SeesOneThatStartsWith(const std::string& what) {
  std::vector<std::string> traces = CellTraces();
  return std::any_of(traces.begin(), traces.end(),
                     [&](const std::string& trace) { return trace.starts_with(what); });
}

TEST(HostGuardTest, AProcessOfACellIsSeenUntilItIsGone) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to make a pid namespace");
  const std::vector<std::string> before = CellTraces();
  sys::Cloned cell = sys::CloneProcess(CLONE_NEWPID).value();
  if (cell.in_child) {
    constexpr uid_t kNobody = 65534;
    if (::setresuid(kNobody, kNobody, kNobody) != 0) sys::ExitNow(1);
    for (;;) ::pause();
  }
  const std::string trace = Text("process ", cell.child.pid(), " ");
  bool seen = false;
  for (int tries = 0; tries < 100 && !seen; ++tries) {
    seen = SeesOneThatStartsWith(trace);
    if (!seen) ::usleep(10'000);  // until it has changed its id
  }
  EXPECT_TRUE(seen);
  std::vector<std::string> changes = ChangesSince(before, kNotLong);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].starts_with("left: " + trace)) << changes[0];
  cell.child = sys::Child();
  EXPECT_FALSE(SeesOneThatStartsWith(trace));
}

TEST(HostGuardTest, ACgroupOfANativeCellIsSeen) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to make a cgroup");
  fs::path place;
  for (const char* base : {"/sys/fs/cgroup/taskcell", "/sys/fs/cgroup/pids/taskcell"}) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(base, ignored)) {
      if (entry.is_directory()) place = entry.path();
    }
  }
  TASKCELL_REQUIRE(!place.empty(), "needs delegated cgroups (tests/support/fixture.sh up)");
  const std::string cgroup = place / "run-of-the-host-guard-test";
  ASSERT_EQ(::mkdir(cgroup.c_str(), 0755), 0);
  EXPECT_TRUE(SeesOneThatStartsWith("cgroup " + cgroup));
  ASSERT_EQ(::rmdir(cgroup.c_str()), 0);
  EXPECT_FALSE(SeesOneThatStartsWith("cgroup " + cgroup));
}

TEST(HostGuardTest, AMountIsSeenWhenItIsLeftAndWhenItIsLost) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  char directory[] = "/tmp/taskcell-host-guard-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  auto first_word = [](const std::vector<std::string>& changes) {
    return changes.size() == 1 ? changes[0].substr(0, changes[0].find(' ', 6)) : "";
  };
  int status = InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return 1;
    std::vector<std::string> without = CellTraces();
    if (::mount("none", directory, "tmpfs", 0, nullptr) != 0) return 2;
    std::vector<std::string> with = CellTraces();
    if (first_word(ChangesSince(without, kNotLong)) != "left: mount") return 3;
    if (::umount2(directory, 0) != 0) return 4;
    return first_word(ChangesSince(with, kNotLong)) == "lost: mount" ? 0 : 5;
  });
  EXPECT_EQ(status, 0);
  ::rmdir(directory);
}

TEST(HostGuardTest, WhatAnEngineHoldsIsSeen) {
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target.starts_with("/containers"))
      return FakeEngine::Answer(200, R"([{"Id":"c0ffee","ImageID":"sha256:1"},{"Id":"c1"}])");
    if (request.target.starts_with("/volumes"))
      return FakeEngine::Answer(200, R"({"Volumes":[{"Driver":"local","Name":"v0"}]})");
    return FakeEngine::Answer(200, R"([{"Id":"sha256:2","ParentId":"sha256:3"}])");
  });
  ASSERT_EQ(::setenv("TASKCELL_TEST_DOCKER_SOCKET", engine.socket_path().c_str(), 1), 0);
  for (const char* trace : {"container c0ffee", "container c1", "volume v0", "image sha256:2"})
    EXPECT_TRUE(SeesOneThatStartsWith(trace)) << trace;
  EXPECT_FALSE(SeesOneThatStartsWith("image sha256:3"));
  ASSERT_EQ(::setenv("TASKCELL_TEST_DOCKER_SOCKET", "/nonexistent", 1), 0);
  EXPECT_FALSE(SeesOneThatStartsWith("container "));
  ASSERT_EQ(::unsetenv("TASKCELL_TEST_DOCKER_SOCKET"), 0);
}

// Runs itself once more, and this time leaves what it made.
TEST(HostGuardTest, ATestThatLeavesSomethingFails) {
  constexpr char kDirectory[] = "/tmp/taskcell-agent-of-the-host-guard-test";
  constexpr char kLeave[] = "TASKCELL_TEST_LEAVE_IT";
  if (::secure_getenv(kLeave) != nullptr) {
    ASSERT_EQ(::mkdir(kDirectory, 0700), 0);
    return;
  }
  RunOptions options;
  options.environment = {Text(kLeave, "=1")};
  Outcome again = test::Run({fs::read_symlink("/proc/self/exe"),
                             "--gtest_filter=HostGuardTest.ATestThatLeavesSomethingFails"},
                            options);
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.out.find(Text("left: directory ", kDirectory)), std::string::npos) << again.out;
  ASSERT_EQ(::rmdir(kDirectory), 0);
}

}  // namespace
}  // namespace taskcell::test
