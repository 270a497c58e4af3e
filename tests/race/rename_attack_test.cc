// The kernel's own rename attack (tools/testing/selftests/openat2/rename_attack_test.c) on the way
// everything below a directory is opened here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "launcher/sys/file.h"
#include "tests/race/swapper.h"
#include "tests/support/temp_directory.h"
#include "tests/support/wait_for.h"
#include "tests/support/without_openat2.h"

namespace taskcell::test {
namespace {

const int kRounds = RaceRounds(20'000);
constexpr int kChain = 19;

// One try without the retries of OpenAt2: whether the kernel met an exchange on the way. The walk
// that stands in for it meets none: its way up is the way it came.
bool IsRaced(int dir_fd, const std::string& path, uint64_t resolve) {
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = resolve;
  UniqueFd opened(static_cast<int>(::syscall(SYS_openat2, dir_fd, path.c_str(), &how, sizeof how)));
  return !opened.valid() && (errno == EAGAIN || errno == EXDEV);
}

class RenameAttackTest : public testing::TestWithParam<uint64_t> {};

// Whoever is in root/a/c when it is exchanged for root/b finds root above itself, not root/a.
TEST_P(RenameAttackTest, AWayUpAndDownNeverLeavesTheDirectoryItBeganIn) {
  const TempDirectory scratch("rename-attack");
  std::filesystem::create_directories(scratch.At("root/a/c"));
  std::filesystem::create_directories(scratch.At("root/b"));
  UniqueFd a = sys::Open(scratch.At("root/a"), O_RDONLY | O_DIRECTORY).value();
  const struct stat inside = sys::Stat(a.get()).value();
  std::string path;
  for (int i = 0; i < kChain; ++i) path += "c/../";
  int opened_rounds = 0;
  int raced = 0;
  {
    Swapper swapper(Exchange(scratch.At("root/a/c"), scratch.At("root/b")));
    const bool is_met = !IsWithoutOpenat2();
    const test::Patience patience;
    for (int round = 0; round < kRounds || (is_met && raced == 0 && patience.Lasts()); ++round) {
      raced += IsRaced(a.get(), path, GetParam()) ? 1 : 0;
      Result<UniqueFd> opened = sys::OpenAt2(a.get(), path, O_PATH, GetParam());
      if (!opened.ok()) {
        ASSERT_TRUE(opened.error().err == EAGAIN || opened.error().err == EXDEV)
            << opened.error().text;
        continue;
      }
      ++opened_rounds;
      const struct stat found = sys::Stat(opened->get()).value();
      ASSERT_EQ(found.st_ino, inside.st_ino);
      ASSERT_EQ(found.st_dev, inside.st_dev);
    }
  }
  EXPECT_GT(opened_rounds, 0) << "control: there is a way";
  if (!IsWithoutOpenat2()) {
    EXPECT_GT(raced, 0) << "control: the kernel saw the attack";
  }
}

// The two of the kernel's.
INSTANTIATE_TEST_SUITE_P(Rules, RenameAttackTest,
                         testing::Values(sys::kResolveBeneath, uint64_t{RESOLVE_IN_ROOT}),
                         [](const auto& row) {
                           return row.param == RESOLVE_IN_ROOT ? "InRoot" : "Beneath";
                         });

}  // namespace
}  // namespace taskcell::test
