#include "gateway/task/run_directory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    home_ = OpenHome(path_).value();
  }
  void TearDown() override { fs::remove_all(path_); }

  std::string path_ = "/tmp/taskcell-run-test-XXXXXX";
  Home home_;
};

TEST_F(RunDirectoryTest, EveryLevelIsPrivateAndGoesAgain) {
  const std::string id = MakeRunId().value();
  EXPECT_EQ(id.size(), 32U);
  EXPECT_NE(id, MakeRunId().value());
  {
    RunDirectory run = RunDirectory::Make(home_, id).value();
    EXPECT_EQ(run.path(), path_ + "/sandbox/runs/" + id);
    for (const char* level : {"/sandbox", "/sandbox/runs"}) {
      struct stat info = {};
      ASSERT_EQ(::stat((path_ + level).c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 07777U, 0700U);
    }
    std::ofstream(run.path() + "/left") << "x";
    EXPECT_FALSE(RunDirectory::Make(home_, id).ok());
  }
  EXPECT_FALSE(fs::exists(path_ + "/sandbox/runs/" + id));
  RunDirectory run = RunDirectory::Make(home_, id).value();
  run.RemoveEmptyParents();
  EXPECT_TRUE(fs::exists(run.path()));
  EXPECT_TRUE(run.Remove().ok());
  EXPECT_TRUE(run.Remove().ok());
  run.RemoveEmptyParents();
  EXPECT_FALSE(fs::exists(path_ + "/sandbox"));
}

// Labelled by an administrator, once: without it an engine's cells would be denied what they are
// shown.
TEST_F(RunDirectoryTest, ASandboxThatWasGivenASelinuxTypeStays) {
  auto label = [](const std::string& path, const std::string& type) {
    const std::string context = "system_u:object_r:" + type + ":s0";
    EXPECT_EQ(::setxattr(path.c_str(), "security.selinux", context.c_str(), context.size() + 1, 0),
              0);
  };
  label(path_, "user_home_t");
  for (const char* type : {"user_home_t", "container_file_t"}) {
    RunDirectory run = RunDirectory::Make(home_, MakeRunId().value()).value();
    label(path_ + "/sandbox", type);
    EXPECT_TRUE(run.Remove().ok());
    run.RemoveEmptyParents();
    EXPECT_FALSE(fs::exists(path_ + "/sandbox/runs"));
    EXPECT_EQ(fs::exists(path_ + "/sandbox"), type == std::string_view("container_file_t"));
  }
}

// Each finds the levels above it as another that ended is about to remove them.
TEST_F(RunDirectoryTest, RunsThatBeginAndEndAtOnceDoNotDisturbEachOther) {
  constexpr int kRounds = 2000;
  auto rounds = [this] {
    int failed = 0;
    for (int round = 0; round < kRounds; ++round) {
      Result<RunDirectory> run = RunDirectory::Make(home_, MakeRunId().value());
      if (!run.ok()) ++failed;
    }
    return failed;
  };
  int other = 0;
  std::thread thread([&] { other = rounds(); });
  EXPECT_EQ(rounds(), 0);
  thread.join();
  EXPECT_EQ(other, 0);
}

TEST_F(RunDirectoryTest, LevelThatIsOpenToOthersOrALinkIsRefused) {
  fs::create_directory(path_ + "/sandbox");
  ASSERT_EQ(::chmod((path_ + "/sandbox").c_str(), 0755), 0);
  Result<RunDirectory> run = RunDirectory::Make(home_, MakeRunId().value());
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, "workspace_failed");
  fs::remove(path_ + "/sandbox");
  fs::create_directory(path_ + "/elsewhere");
  ASSERT_EQ(::chmod((path_ + "/elsewhere").c_str(), 0700), 0);
  fs::create_directory_symlink("elsewhere", path_ + "/sandbox");
  EXPECT_FALSE(RunDirectory::Make(home_, MakeRunId().value()).ok());
  EXPECT_TRUE(fs::is_empty(path_ + "/elsewhere"));
  fs::remove(path_ + "/sandbox");
  EXPECT_TRUE(RunDirectory::Make(home_, MakeRunId().value()).ok());
}

TEST_F(RunDirectoryTest, WithoutADescriptorForItNoDirectoryIsLeft) {
  RunDirectory other = RunDirectory::Make(home_, MakeRunId().value()).value();
  int status = test::InChild([this] {
    // All but the last that Make opens.
    constexpr rlim_t kDescriptors = 4;
    UniqueFd next = sys::Open("/", O_PATH | O_DIRECTORY).value();
    rlim_t free = static_cast<rlim_t>(next.get());
    next.Reset();
    struct rlimit limit = {free + kDescriptors, free + kDescriptors};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
    return RunDirectory::Make(home_, std::string(32, 'f')).ok() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(path_ + "/sandbox/runs")) << "control: it came as far as that";
  EXPECT_FALSE(fs::exists(path_ + "/sandbox/runs/" + std::string(32, 'f')));
}

}  // namespace
}  // namespace taskcell::gateway
