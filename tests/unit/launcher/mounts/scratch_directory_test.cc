#include "launcher/mounts/scratch_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

const std::string kPurpose = "scratchtest" + std::to_string(::getpid());

std::string NewRunId() {
  static int count = 0;
  return std::to_string(::getpid()) + "-" + std::to_string(++count);
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

TEST(ScratchDirectoryTest, GoesWithAllThatIsInIt) {
  std::string path;
  {
    ScratchDirectory made = ScratchDirectory::Make(kPurpose, NewRunId()).value();
    path = made.path();
    ASSERT_TRUE(sys::MakeDirectory(made.fd(), "below", 0700).ok());
  }
  EXPECT_FALSE(Exists(path));
}

TEST(ScratchDirectoryTest, WhatAKilledProcessLeftGoesAndWhatIsHeldStays) {
  ScratchDirectory held = ScratchDirectory::Make(kPurpose, NewRunId()).value();
  const std::string left_id = NewRunId();
  pid_t killed = ::fork();
  if (killed == 0) {
    Result<ScratchDirectory> left = ScratchDirectory::Make(kPurpose, left_id);
    ::_exit(left.ok() ? 0 : 1);  // no destructor runs
  }
  int status = -1;
  ASSERT_EQ(::waitpid(killed, &status, 0), killed);
  ASSERT_EQ(status, 0);
  const std::string left =
      std::filesystem::path(held.path()).parent_path() /
      ("taskcell-" + kPurpose + "-" + std::to_string(::geteuid()) + "-" + left_id);
  ASSERT_TRUE(Exists(left));
  ASSERT_TRUE(ScratchDirectory::Make(kPurpose, NewRunId()).ok());
  EXPECT_FALSE(Exists(left));
  EXPECT_TRUE(Exists(held.path()));
}

bool HasFound(const std::vector<AbandonedScratch>& found, const std::string& path) {
  return std::any_of(found.begin(), found.end(), [&](const AbandonedScratch& each) {
    return each.path == path && each.purpose == kPurpose && path.ends_with("-" + each.run_id);
  });
}

TEST(ScratchDirectoryTest, WhatKilledProcessesLeftIsFoundByItsNameAndThoseThatLiveStay) {
  auto path_of = [](char digit, uid_t uid) {
    return "/tmp/taskcell-" + kPurpose + "-" + std::to_string(uid) + "-" + std::string(32, digit);
  };
  const uid_t own = ::geteuid();
  const pid_t killed = ::fork();
  if (killed == 0) {
    Result<ScratchDirectory> left = ScratchDirectory::MakePassable(kPurpose, std::string(32, 'a'));
    if (!left.ok() || !sys::MakeDirectory(left->fd(), "below", 0700).ok()) ::_exit(1);
    ::_exit(0);  // no destructor runs
  }
  int status = -1;
  ASSERT_EQ(::waitpid(killed, &status, 0), killed);
  ASSERT_EQ(status, 0);
  ScratchDirectory held =
      ScratchDirectory::MakePassable("scratchother", std::string(32, 'b')).value();
  // No scratch directory of this user's, whatever the name begins with.
  const std::string other = path_of('c', own) + "-more";
  const std::string stranger = path_of('c', own + 1);
  const std::string file = path_of('c', own);
  for (const std::string& path : {other, stranger}) std::filesystem::create_directory(path);
  std::ofstream(file) << "no directory";
  const std::string left = path_of('a', own);
  std::vector<AbandonedScratch> found = RemoveAbandonedScratch(true);
  EXPECT_TRUE(HasFound(found, left));
  EXPECT_TRUE(Exists(left + "/below")) << "it was only looked for";
  EXPECT_TRUE(HasFound(RemoveAbandonedScratch(false), left));
  EXPECT_FALSE(Exists(left));
  for (const std::string& path : {held.path(), other, stranger, file}) {
    EXPECT_FALSE(HasFound(found, path)) << path;
    EXPECT_TRUE(Exists(path)) << path;
  }
  for (const std::string& path : {other, stranger, file}) std::filesystem::remove(path);
}

// Each tidies up what it takes for a leftover while the others make theirs.
TEST(ScratchDirectoryTest, ManyAtOnceDoNotTakeEachOtherAway) {
  std::vector<pid_t> makers;
  for (int i = 0; i < 8; ++i) {
    pid_t maker = ::fork();
    if (maker == 0) {
      for (int round = 0; round < 200; ++round) {
        Result<ScratchDirectory> made = ScratchDirectory::Make(kPurpose, NewRunId());
        if (!made.ok()) std::fprintf(stderr, "%s\n", made.error().text.c_str());
        if (!made.ok() || !Exists(made->path())) ::_exit(1);
        if (!sys::MakeDirectory(made->fd(), "below", 0700).ok()) ::_exit(2);
      }
      ::_exit(0);
    }
    makers.push_back(maker);
  }
  for (pid_t maker : makers) {
    int status = -1;
    ASSERT_EQ(::waitpid(maker, &status, 0), maker);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace taskcell::mounts
