#include "launcher/native/request.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "launcher/native/source_walk.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "tests/support/fixture.h"

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

TEST_F(RequestTest, TheProgramStartsInTheDirectoryWithoutItsTrailingSlash) {
  Options options;
  options.working_directory = "/tmp/";
  LaunchRequest request = std::move(Make(options)).value();
  EXPECT_EQ(request.job.working_directory, "/tmp");
  EXPECT_EQ(request.plan.working_directory, "/tmp");
}

TEST_F(RequestTest, MoreArgumentsThanAJobTakesAreRefusedWithBothNumbers) {
  Options options;
  options.command.assign(cell::kMaxJobStrings + 1, "a");
  Result<LaunchRequest> request = MakeRequest(options, kRunId, "");
  ASSERT_FALSE(request.ok());
  EXPECT_THAT(request.error().text, HasSubstr("262145 arguments, more than 262144"));
}

class SourceWalkTest : public RequestTest {
 protected:
  Status Check() {
    UniqueFd fd = sys::Open(path_, O_PATH).value();
    return CheckSource(fd.get(), path_);
  }
  Status CheckEntries(std::size_t entries) {
    UniqueFd fd = sys::Open(path_, O_PATH).value();
    return CheckSource(fd.get(), path_, {entries, kSourceBounds.depth});
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
  for (int depth = 1; depth < kSourceBounds.depth; ++depth) path += "/d";
  fs::create_directories(path);
  EXPECT_TRUE(Check().ok());
  fs::create_directory(path + "/d");
  EXPECT_FALSE(Check().ok());
}

TEST_F(SourceWalkTest, TheEntryBoundIsTakenAndOnePastItIsRefused) {
  fs::create_directories(path_ + "/a/b");
  std::ofstream(path_ + "/a/file") << "x";
  EXPECT_TRUE(CheckEntries(3).ok());
  Status refused = CheckEntries(2);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text, HasSubstr("more than 2 entries"));
}

TEST_F(SourceWalkTest, ADeviceItselfIsRefused) {
  UniqueFd null = sys::Open("/dev/null", O_PATH).value();
  EXPECT_FALSE(CheckSource(null.get(), "/dev/null").ok());
}

constexpr uid_t kCellUid = 65533;  // no file here is that user's or group's

class RootWalkTest : public RequestTest {
 protected:
  // As root, or as a user without capabilities (as_nobody).
  Status Check(const OutsideIds& cell = {MapWay::kSubids, kCellUid, kCellUid},
               const WalkBounds& bounds = kRootBounds) {
    UniqueFd fd = sys::Open(path_, O_PATH).value();
    return CheckRootDirectory(fd.get(), path_, cell, bounds);
  }
  // The refusal's text as nobody sees it, "" for none.
  std::string CheckAsNobody(const OutsideIds& cell) {
    fs::permissions(path_, fs::perms(0755));
    std::string told = path_ + "/told";
    std::ofstream(told).flush();
    fs::permissions(told, fs::perms(0666));
    int status = test::InChild([&] {
      if (::setgroups(0, nullptr) != 0 || ::setresgid(65534, 65534, 65534) != 0 ||
          ::setresuid(65534, 65534, 65534) != 0)
        return 9;
      Status checked = Check(cell);
      if (!checked.ok()) std::ofstream(told) << checked.error().text;
      return 0;
    });
    EXPECT_EQ(status, 0);
    std::ifstream file(told);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(RootWalkTest, ASocketOrFifoIsRefusedByNameWithTheWayOut) {
  fs::create_directories(path_ + "/run/x");
  EXPECT_TRUE(Check().ok());
  ASSERT_EQ(::mkfifo((path_ + "/run/x/pipe").c_str(), 0600), 0);
  Status fifo = Check();
  ASSERT_FALSE(fifo.ok());
  EXPECT_THAT(fifo.error().text, HasSubstr(path_ + "/run/x/pipe' is a FIFO"));
  EXPECT_THAT(fifo.error().text, HasSubstr("find " + path_ + " -type s,p -delete"));
  fs::remove(path_ + "/run/x/pipe");
  UniqueFd listener = sys::ListenPackets(path_ + "/run/s").value();
  Status socket = Check();
  ASSERT_FALSE(socket.ok());
  EXPECT_THAT(socket.error().text, HasSubstr("is a socket"));
}

TEST_F(RootWalkTest, DevicesAsDebootstrapMakesThemPass) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to make a device");
  fs::create_directory(path_ + "/dev");
  ASSERT_EQ(::mknod((path_ + "/dev/null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  ASSERT_EQ(::mknod((path_ + "/dev/sda").c_str(), S_IFBLK | 0660, makedev(8, 0)), 0);
  EXPECT_TRUE(Check().ok());
}

TEST_F(RootWalkTest, AMountBelowIsRefusedByName) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  fs::create_directory(path_ + "/proc");
  EXPECT_TRUE(Check().ok());
  int status = test::InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("t", (path_ + "/proc").c_str(), "tmpfs", 0, nullptr) != 0)
      return 9;
    Status refused = Check();
    return !refused.ok() &&
                   refused.error().text.find("mounted at '" + path_ + "/proc'") != std::string::npos
               ? 0
               : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(RootWalkTest, TheBoundsAreTakenAndOnePastThemIsRefused) {
  fs::create_directories(path_ + "/a/b");
  const OutsideIds cell = {MapWay::kSubids, kCellUid, kCellUid};
  EXPECT_TRUE(Check(cell, {2, 3}).ok());
  EXPECT_FALSE(Check(cell, {1, 3}).ok());
  EXPECT_FALSE(Check(cell, {2, 2}).ok());
}

TEST_F(RootWalkTest, WhatCannotBeListedPassesOnlyWhereTheCellCannotEnterIt) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become another user");
  struct Row {
    mode_t mode;
    OutsideIds cell;
    bool passes;
  };
  const OutsideIds own = {MapWay::kOwn, 65534, 65534};
  const OutsideIds other = {MapWay::kSubids, kCellUid, kCellUid};
  const OutsideIds owner = {MapWay::kSubids, 0, kCellUid};
  const OutsideIds group = {MapWay::kSubids, kCellUid, 0};
  const Row rows[] = {
      {0700, own, true},    {0750, own, true},    {0711, own, false},   {0700, other, true},
      {0750, other, true},  {0711, other, false}, {0700, owner, false}, {0600, owner, true},
      {0750, group, false}, {0740, group, true},
  };
  fs::create_directory(path_ + "/closed");
  for (const Row& row : rows) {
    ASSERT_EQ(::chmod((path_ + "/closed").c_str(), row.mode), 0);
    std::string told = CheckAsNobody(row.cell);
    std::string refusal = path_ + "/closed' cannot be looked through";
    EXPECT_EQ(told.find(refusal) == told.npos, row.passes) << std::oct << row.mode << " " << told;
    EXPECT_EQ(told.empty(), row.passes) << told;
  }
}

TEST_F(RootWalkTest, AnAccessListMayNameTheCell) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become another user");
  fs::create_directory(path_ + "/closed");
  ASSERT_EQ(::chmod((path_ + "/closed").c_str(), 0700), 0);
  // Version 2; owner rwx, user kCellUid --x, group ---, mask --x, others ---.
  const unsigned char list[] = {2,    0,    0,    0,    1,    0,    7,    0,    0xff, 0xff, 0xff,
                                0xff, 2,    0,    1,    0,    0xfd, 0xff, 0,    0,    4,    0,
                                0,    0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,    1,    0,    0xff,
                                0xff, 0xff, 0xff, 0x20, 0,    0,    0,    0xff, 0xff, 0xff, 0xff};
  TASKCELL_REQUIRE(
      ::setxattr((path_ + "/closed").c_str(), "system.posix_acl_access", list, sizeof list, 0) == 0,
      "needs a file system with access lists");
  EXPECT_NE(CheckAsNobody({MapWay::kSubids, kCellUid, kCellUid}), "");
}

}  // namespace
}  // namespace taskcell::native
