#include "launcher/native/request.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "launcher/native/source_walk.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr char kRunId[] = "0123456789abcdef0123456789abcdef";

class RequestTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/taskcell-request-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = fs::canonical(pattern).string();
  }
  void TearDown() override { fs::remove_all(path_); }

  Result<LaunchRequest> Make(Options options) {
    options.command = {"true"};
    return MakeRequest(options, kRunId, "");
  }

  std::string path_;
};

TEST(MakeEnvironmentTest, TheCallersEnvironmentIsNotThereAndExtraWins) {
  std::vector<std::string> environment = MakeEnvironment({"A=1", "HOME=/h", "A=2"}, "xterm");
  EXPECT_THAT(environment, Contains("PATH=/usr/local/bin:/usr/bin:/bin"));
  EXPECT_THAT(environment, Contains("TERM=xterm"));
  EXPECT_THAT(environment, Contains("A=2"));
  EXPECT_THAT(environment, Contains("HOME=/h"));
  EXPECT_THAT(environment, Not(Contains("A=1")));
  EXPECT_THAT(environment, Not(Contains("HOME=/tmp/home")));
  EXPECT_EQ(environment.size(), 7U);
}

TEST(PlanTmpfsTest, TmpAndWorkspaceFitTheMemoryLimitTogether) {
  Options options;
  options.limits.memory_bytes = uint64_t{64} << 20U;
  std::vector<cell::PlannedTmpfs> tmpfs = PlanTmpfs(options);
  ASSERT_EQ(tmpfs.size(), 2U);
  EXPECT_LE(tmpfs[0].size_bytes + tmpfs[1].size_bytes, options.limits.memory_bytes);
  options.limits = kDefaultLimits;
  tmpfs = PlanTmpfs(options);
  EXPECT_EQ(tmpfs[0].size_bytes, kDefaultTmpBytes);
  EXPECT_EQ(tmpfs[1].size_bytes, kDefaultWorkspaceBytes);
}

TEST(PlanTmpfsTest, AnAskedSizeReplacesTheDefaultAndANewTargetIsAdded) {
  Options options;
  cell::PlannedTmpfs tmp;
  tmp.target = "/tmp";
  tmp.size_bytes = 4096;
  cell::PlannedTmpfs other = tmp;
  other.target = "/other";
  options.tmpfs = {tmp, other};
  std::vector<cell::PlannedTmpfs> tmpfs = PlanTmpfs(options);
  ASSERT_EQ(tmpfs.size(), 3U);
  EXPECT_EQ(tmpfs[0].size_bytes, 4096U);
  EXPECT_TRUE(tmpfs[0].exec);
  EXPECT_EQ(tmpfs[2].target, "/other");
  EXPECT_FALSE(tmpfs[2].exec);
}

TEST_F(RequestTest, ALinkToASourceIsPlannedAsWhatItPointsAt) {
  fs::create_directory(path_ + "/real");
  fs::create_symlink("real", path_ + "/link");
  Options options;
  options.binds = {{path_ + "/link", "/data/", false}};
  LaunchRequest request = std::move(Make(options)).value();
  ASSERT_EQ(request.plan.mounts.size(), 1U);
  EXPECT_EQ(request.plan.mounts[0].source, path_ + "/real");
  EXPECT_EQ(request.plan.mounts[0].target, "/data");
  struct stat info = {};
  ASSERT_EQ(::stat((path_ + "/real").c_str(), &info), 0);
  EXPECT_EQ(request.plan.mounts[0].inode, info.st_ino);
  EXPECT_EQ(request.pins.size(), 1U);
}

TEST_F(RequestTest, TheHostsRootIsNoRootfs) {
  fs::create_symlink("/", path_ + "/link");
  for (const std::string& root : {std::string("/"), path_ + "/link", path_ + "/../../"}) {
    Options options;
    options.rootfs = root;
    EXPECT_FALSE(Make(options).ok()) << root;
  }
  Options control;
  control.rootfs = path_;
  EXPECT_TRUE(Make(control).ok());
}

TEST_F(RequestTest, SourcesThatAreNotThereOrTargetsOfTheCellAreRefused) {
  Options missing;
  missing.binds = {{path_ + "/nothing", "/x", false}};
  Result<LaunchRequest> request = Make(missing);
  ASSERT_FALSE(request.ok());
  EXPECT_THAT(request.error().text, HasSubstr("--ro"));
  for (const char* target : {"/proc/x", "/dev", "/sys", "/", "relative", "/a/../b"}) {
    Options options;
    options.binds = {{path_, target, false}};
    EXPECT_FALSE(Make(options).ok()) << target;
  }
}

class SourceWalkTest : public RequestTest {
 protected:
  Status Check() {
    UniqueFd fd = sys::Open(path_, O_PATH).value();
    return CheckSource(fd.get(), path_);
  }
};

TEST_F(SourceWalkTest, PlainFilesDirectoriesAndLinksPass) {
  fs::create_directories(path_ + "/a/b/c");
  std::ofstream(path_ + "/a/b/file") << "x";
  fs::create_symlink("/etc/shadow", path_ + "/a/link");
  EXPECT_TRUE(Check().ok());
}

TEST_F(SourceWalkTest, ASocketFifoOrDeviceDeepInsideIsRefusedByName) {
  fs::create_directories(path_ + "/a/b");
  ASSERT_EQ(::mkfifo((path_ + "/a/b/pipe").c_str(), 0600), 0);
  Status fifo = Check();
  ASSERT_FALSE(fifo.ok());
  EXPECT_THAT(fifo.error().text, HasSubstr("a/b/pipe"));
  fs::remove(path_ + "/a/b/pipe");
  ASSERT_TRUE(Check().ok());
  UniqueFd listener = sys::ListenPackets(path_ + "/a/s").value();
  Status socket = Check();
  ASSERT_FALSE(socket.ok());
  EXPECT_THAT(socket.error().text, HasSubstr("socket"));
}

TEST_F(SourceWalkTest, TheDepthBoundIsTakenAndOnePastItIsRefused) {
  std::string path = path_;
  for (int depth = 1; depth < kMaxWalkDepth; ++depth) path += "/d";
  fs::create_directories(path);
  EXPECT_TRUE(Check().ok());
  fs::create_directory(path + "/d");
  EXPECT_FALSE(Check().ok());
}

TEST_F(SourceWalkTest, ADeviceItselfIsRefused) {
  UniqueFd null = sys::Open("/dev/null", O_PATH).value();
  EXPECT_FALSE(CheckSource(null.get(), "/dev/null").ok());
}

}  // namespace
}  // namespace taskcell::native
