#include "launcher/mounts/ancestors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/access_list.h"
#include "tests/support/fixture.h"
#include "tests/support/hung_files.h"
#include "tests/support/lying_files.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::mounts {
namespace {

namespace fs = std::filesystem;
using What = Concern::What;

class AncestorsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    fs::create_directories(At("a/b/c"));
  }
  void TearDown() override { fs::remove_all(path_); }
  std::string At(const std::string& name) const { return path_ + "/" + name; }
  // What is said about a path below the test's directory, for a user who owns it.
  PinnedPath Pin(const std::string& name) const {
    return PinPath(At(name), Trust{::geteuid(), std::nullopt}).value();
  }
  static void ExpectOnly(const PinnedPath& pinned, What what, const std::string& path) {
    ASSERT_EQ(pinned.concerns.size(), 1U);
    EXPECT_EQ(pinned.concerns[0].what, what);
    EXPECT_EQ(pinned.concerns[0].path, path);
    EXPECT_FALSE(pinned.concerns[0].found.empty());
    EXPECT_FALSE(pinned.concerns[0].fix.empty());
  }

  std::string path_ = "/tmp/taskcell-ancestors-XXXXXX";
};

TEST_F(AncestorsTest, APathOfOnesOwnBelowAStickyDirectoryOfRootIsTrusted) {
  PinnedPath pinned = Pin("a/b/c");
  EXPECT_TRUE(pinned.concerns.empty());
  EXPECT_EQ(pinned.path, At("a/b/c"));
  EXPECT_EQ(sys::Stat(pinned.fd.get())->st_ino, sys::StatAt(AT_FDCWD, At("a/b/c"))->st_ino);
}

TEST_F(AncestorsTest, MagicLinksOfProcAreNoWay) {
  const std::string pid = Text("/proc/", ::getpid());
  const UniqueFd gone = sys::Open(At("a/b/c"), O_PATH | O_DIRECTORY).value();
  fs::remove(At("a/b/c"));
  fs::create_directory(At("a/b/c (deleted)"));  // what the link's text names
  for (const std::string& way :
       {pid + "/root/tmp", pid + "/cwd", std::string("/proc/self/root"),
        Text("/proc/self/fd/", gone.get()), Text("/dev/fd/", gone.get())}) {
    const Result<PinnedPath> pinned = PinPath(way, {});
    ASSERT_FALSE(pinned.ok()) << way << " as " << pinned->path;
    EXPECT_EQ(pinned.error().err, ELOOP) << way;
    EXPECT_NE(pinned.error().text.find("magic link"), std::string::npos) << pinned.error().text;
  }
  EXPECT_EQ(PinPath("/proc/self/status", {})->path, pid + "/status") << "a plain link of /proc";
}

TEST_F(AncestorsTest, DotsAndSlashesLeadWhereTheKernelSaysTheyDo) {
  for (const char* name : {"a//b/./c", "a/b/../b/c/", "a/b/c/."})
    EXPECT_EQ(Pin(name).path, At("a/b/c")) << name;
  EXPECT_EQ(PinPath("/..//../tmp", {})->path, "/tmp");
}

TEST_F(AncestorsTest, ADirectoryThatOthersMayWriteIsAConcernAndTheLastOneIsNot) {
  ASSERT_EQ(::chmod(At("a/b/c").c_str(), 0777), 0);
  EXPECT_TRUE(Pin("a/b/c").concerns.empty());
  ASSERT_EQ(::chmod(At("a/b").c_str(), 0777), 0);
  ExpectOnly(Pin("a/b/c"), What::kWritable, At("a/b"));
  Result<PinnedPath> refused = PinTrustedPath(At("a/b/c"), Trust{::geteuid(), std::nullopt});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, Kind::kViolation);
  EXPECT_NE(refused.error().text.find(Text("chmod go-w ", At("a/b"))), std::string::npos);
}

TEST_F(AncestorsTest, AGroupCountsUnlessItIsTheOwnersAlone) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to give a directory to a group");
  ASSERT_EQ(::chown(At("a/b").c_str(), ::geteuid(), 4321), 0);
  ASSERT_EQ(::chmod(At("a/b").c_str(), 0775), 0);
  ExpectOnly(Pin("a/b/c"), What::kWritable, At("a/b"));
  EXPECT_TRUE(PinPath(At("a/b/c"), Trust{::geteuid(), 4321})->concerns.empty());
}

TEST_F(AncestorsTest, AnAccessListThatLetsAnotherUserWriteIsAConcern) {
  TASKCELL_REQUIRE(test::LetUser1500Write(At("a/b")),
                   "needs access control lists on the file system of /tmp");
  const gid_t group = sys::StatAt(AT_FDCWD, At("a/b"))->st_gid;
  const Trust trust{::geteuid(), group};
  ASSERT_EQ(sys::StatAt(AT_FDCWD, At("a/b"))->st_mode & 0777U, 0774U);
  ExpectOnly(PinPath(At("a/b/c"), trust).value(), What::kWritable, At("a/b"));
  EXPECT_FALSE(PinTrustedPath(At("a/b/c"), trust).ok());
  ASSERT_EQ(::chmod(At("a/b").c_str(), 0755), 0);
  EXPECT_TRUE(PinPath(At("a/b/c"), trust)->concerns.empty()) << "the remedy helps";
}

TEST_F(AncestorsTest, AnAccessListThatCannotBeAskedForIsAConcern) {
  ASSERT_EQ(::chmod(At("a/b").c_str(), 0775), 0);
  const Trust trust{::geteuid(), sys::StatAt(AT_FDCWD, At("a/b"))->st_gid};
  ASSERT_TRUE(PinPath(At("a/b/c"), trust)->concerns.empty());
  int status = test::InChild([&] {
    if (!test::InstallFaults({{SYS_getxattr, EIO}})) return 2;
    PinnedPath pinned = PinPath(At("a/b/c"), trust).value();
    return pinned.concerns.size() == 1 && pinned.concerns[0].path == At("a/b") ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(AncestorsTest, OnlyTheStickyDirectoriesOfRootAreTrusted) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to give directories away");
  constexpr uid_t kOwner = 12345;
  constexpr uid_t kOther = 54321;
  ASSERT_EQ(::chmod(At("a").c_str(), 01777), 0);
  auto pin = [&] { return PinPath(At("a/b/c"), Trust{kOwner, std::nullopt}).value(); };
  EXPECT_TRUE(pin().concerns.empty()) << "root's";
  ASSERT_EQ(::chown(At("a/b").c_str(), kOther, 0), 0);
  PinnedPath foreign = pin();
  ASSERT_EQ(foreign.concerns.size(), 1U) << "its owner can rename it, sticky or not";
  EXPECT_EQ(foreign.concerns[0].path, At("a/b"));
  ASSERT_EQ(::chown(At("a/b").c_str(), kOwner, 0), 0);
  EXPECT_TRUE(pin().concerns.empty());
  ASSERT_EQ(::chown(At("a").c_str(), kOwner, 0), 0);
  ExpectOnly(pin(), What::kWritable, At("a"));
}

TEST_F(AncestorsTest, LinksOfRootInDirectoriesOfRootAreFollowedAndOthersAreConcerns) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, whose links are trusted");
  constexpr uid_t kOwner = 12345;
  for (const std::string& target : {std::string("a/b"), At("a/b"), std::string("a/../a/b/")}) {
    fs::create_symlink(target, At("link"));
    PinnedPath pinned = PinPath(At("link/c"), Trust{kOwner, std::nullopt}).value();
    EXPECT_TRUE(pinned.concerns.empty()) << target;
    EXPECT_EQ(pinned.path, At("a/b/c"));
    ASSERT_EQ(::lchown(At("link").c_str(), kOwner, 0), 0);
    pinned = PinPath(At("link/c"), Trust{kOwner, std::nullopt}).value();
    ExpectOnly(pinned, What::kLink, At("link"));
    EXPECT_EQ(pinned.path, At("a/b/c"));
    fs::remove(At("link"));
  }
}

// Owners and modes are what the server says.
TEST_F(AncestorsTest, AWayThroughFilesThatAnotherUserServesIsAConcern) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  constexpr uid_t kServer = 1500;
  const int status = test::InChild([this] {
    if (!test::EnterOwnMounts()) return 90;
    const test::LyingFiles lying(At("a/b"), kServer, At("a"));
    if (!lying.mounted()) return 91;
    for (const char* way : {"a/b/link/b", "a/b/dir/dir", "a/b/dir", "a/b", "a/b/link/../a"}) {
      const PinnedPath pinned = PinPath(At(way), Trust{0, std::nullopt}).value();
      EXPECT_FALSE(PinTrustedPath(At(way), Trust{0, std::nullopt}).ok()) << way;
      ExpectOnly(pinned, What::kOwner, At("a/b"));
      if (HasFailure()) return 1;
      EXPECT_NE(pinned.concerns[0].found.find("served by uid 1500"), std::string::npos);
    }
    // The user's own is no concern of the user's, and what root serves is nobody's.
    EXPECT_TRUE(PinPath(At("a/b/dir/dir"), Trust{kServer, std::nullopt})->concerns.empty());
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(AncestorsTest, AWayThroughFilesThatRootServesIsNoConcern) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  const int status = test::InChild([this] {
    if (!test::EnterOwnMounts()) return 90;
    const test::LyingFiles lying(At("a/b"), 0, At("a"));
    const Result<PinnedPath> pinned = PinTrustedPath(At("a/b/dir/dir"), Trust{});
    return lying.mounted() && pinned.ok() && pinned->remote.empty() ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

// It is gone from mountinfo, and with it who serves it.
TEST_F(AncestorsTest, AWayThroughFilesOfAnUnknownServerIsAConcern) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  const int status = test::InChild([this] {
    if (!test::EnterOwnMounts()) return 90;
    const test::LyingFiles lying(At("a/b"), 0, At("a"));
    if (!lying.mounted()) return 91;
    if (::mount("none", "/proc", "tmpfs", 0, "") != 0) return 92;
    ExpectOnly(PinPath(At("a/b/dir"), Trust{}).value(), What::kOwner, At("a/b"));
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(AncestorsTest, WhatLeadsNowhereIsAnErrorThatNamesThePath) {
  fs::create_symlink("loop", At("loop"));
  std::ofstream(At("file")) << "x";
  for (const auto& [name, err] : std::map<std::string, int>{
           {"absent/x", ENOENT}, {"loop/x", ELOOP}, {"file/x", ENOTDIR}, {"file/", ENOTDIR}}) {
    Result<PinnedPath> pinned = PinPath(At(name), {});
    ASSERT_FALSE(pinned.ok()) << name;
    EXPECT_EQ(pinned.error().err, err) << name;
    EXPECT_NE(pinned.error().text.find(At(name)), std::string::npos) << pinned.error().text;
  }
  EXPECT_FALSE(PinPath("", {}).ok());
  EXPECT_FALSE(PinPath(std::string("/tmp\0x", 6), {}).ok());
}

TEST_F(AncestorsTest, ARelativePathIsJudgedFromTheRoot) {
  ASSERT_EQ(::chmod(At("a").c_str(), 0777), 0);
  int status = test::InChild([this] {
    if (::chdir(At("a/b").c_str()) != 0) return 2;
    PinnedPath pinned = PinPath("c", Trust{::geteuid(), std::nullopt}).value();
    return pinned.path == At("a/b/c") && pinned.concerns.size() == 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

// What /proc calls a directory that is gone is a name that somebody else may take.
TEST_F(AncestorsTest, ADirectoryThatIsGoneIsNotTheOneThatHasItsNameNow) {
  const int status = test::InChild([this] {
    if (::chdir(At("a/b/c").c_str()) != 0) return 2;
    fs::remove(At("a/b/c"));
    for (const char* name : {"a/b/c", "a/b/c (deleted)"}) {
      fs::create_directories(At(name));
      std::ofstream(At(name) + "/file") << "of somebody else";
    }
    for (const char* path : {".", "file", "./file", "../c/file"}) {
      if (PinPath(path, {}).ok()) return 1;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::mounts
