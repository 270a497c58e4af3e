// Names that are resolved while somebody exchanges a directory on the way, by the names the cases
// have in libpathrs: what is opened is what lies there, or nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <string>

#include "launcher/sys/file.h"
#include "tests/race/swapper.h"
#include "tests/support/temp_directory.h"
#include "tests/support/wait_for.h"
#include "tests/support/without_openat2.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

const int kRounds = RaceRounds(20'000);

// What a directory on the way to the file is exchanged with.
struct Swap {
  const char* name;
  const char* way;       // the name below the test's directory that is exchanged
  const char* other;     // with what is there, or a link that is made there
  const char* link;      // to this; "": no link. "@": the absolute path of the canary's directory
  std::set<int> errors;  // besides EAGAIN
  // What was exchanged in leads to a file in the root, too.
  bool both_are_inside = false;
};

struct ResolveRace {
  Swap swap;
  const char* form;
  const char* path;
};
void PrintTo(const ResolveRace& race, std::ostream* out) { *out << race.swap.name << race.form; }

class ResolveRaceTest : public testing::TestWithParam<ResolveRace>, protected TempDirectory {
 protected:
  ResolveRaceTest() : TempDirectory("resolve-race") {
    Put("root/a/b/c/d/e", "good");
    Put("root/file", "a file");
    // Where somebody who left the root would come to.
    for (const char* name : {"c/d/e", "b/c/d/e", "d/e", "e", "outside/d/e", "target/c/d/e"})
      Put(name, "the canary");
    Put("elsewhere/c/d/e", "good, too");
  }
};

TEST_P(ResolveRaceTest, OpensWhatLiesThereOrNothing) {
  const Swap& swap = GetParam().swap;
  const std::string target = swap.link == std::string("@") ? At("target") : swap.link;
  if (!target.empty()) Link(target, swap.other);
  UniqueFd root = sys::Open(At("root"), O_PATH | O_DIRECTORY).value();
  std::set<std::string> allowed = {"good"};
  if (swap.both_are_inside) allowed.insert("good, too");
  std::map<int, int> seen;
  int rounds = 0;
  const bool fails_at_times = !swap.errors.empty() && !swap.both_are_inside;
  const auto is_one_sided = [&] { return fails_at_times && seen.size() < 2; };
  {
    Swapper swapper(Exchange(At(swap.way), At(swap.other)));
    const test::Patience patience;
    for (; rounds < kRounds || (is_one_sided() && patience.Lasts()); ++rounds) {
      Result<UniqueFd> opened = sys::OpenAt2(root.get(), GetParam().path, O_RDONLY,
                                             RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
      const int err = opened.ok() ? 0 : opened.error().err;
      ++seen[err];
      if (opened.ok()) {
        const std::string text = sys::ReadAll(opened->get(), 100).value();
        ASSERT_TRUE(allowed.contains(text)) << text;
      } else {
        ASSERT_TRUE(err == EAGAIN || swap.errors.contains(err)) << opened.error().text;
      }
    }
  }
  EXPECT_GT(seen[0], 0) << "control: there is a way";
  EXPECT_FALSE(is_one_sided()) << "control: both were met";
}

const Swap kSwaps[] = {
    {"SwapDirLink1", "root/a/b", "root/a/link", "/a/b-not-there", {ENOENT}},
    {"SwapDirLink2", "root/a/b", "root/a/link", "../a/link", {ELOOP, ENOENT}, true},
    {"SwapDirFile", "root/a/b", "root/file", "", {ENOTDIR}},
    {"SwapDirBadlinkEnoent", "root/a/b/c", "root/a/link", "nowhere", {ENOENT}},
    {"SwapDirBadlinkEnotdir", "root/a/b/c", "root/a/link", "/file/x", {ENOTDIR, ENOENT}},
    {"SwapDirAttackLink", "root/a/b", "root/a/link", "../../../target", {ENOENT}},
    {"SwapDirAttackAbsLink", "root/a/b", "root/a/link", "@", {ENOENT}},
    {"MoveRoot", "root", "elsewhere", "", {}},
    {"SwapDirOutsideRoot", "root/a/b", "elsewhere", "", {EXDEV}, true},
};

std::vector<ResolveRace> Races() {
  std::vector<ResolveRace> races;
  for (const Swap& swap : kSwaps) {
    races.push_back({swap, "Basic", "a/b/c/d/e"});
    races.push_back({swap, "Dotdot", "a/b/c/../../b/c/d/../../c/d/e"});
  }
  return races;
}

INSTANTIATE_TEST_SUITE_P(Libpathrs, ResolveRaceTest, testing::ValuesIn(Races()),
                         [](const auto& row) {
                           return std::string(row.param.swap.name) + row.param.form;
                         });

}  // namespace
}  // namespace taskcell::test
