// What a snapshot keeps of the links inside SKILLS and wiki.
#include <sched.h>
#include <sys/mount.h>

#include <atomic>
#include <map>
#include <thread>

#include "launcher/base/text.h"
#include "tests/support/fixture.h"
#include "tests/support/without_openat2.h"
#include "tests/unit/launcher/mounts/snapshot_fixture.h"

namespace taskcell::mounts {
namespace {

const int kRounds = test::IsWithoutOpenat2() ? 20 : 200;

class SnapshotLinksTest : public SnapshotTest {
 protected:
  // Past the time within which a change of links may leave no trace.
  static void LetTheClockTick() { ::usleep(150'000); }
  // What stands in the snapshot: files with their text, links with their target.
  std::map<std::string, std::string> Copied() const {
    std::map<std::string, std::string> copied;
    for (const auto& entry : fs::recursive_directory_iterator(target())) {
      std::string name = entry.path().string().substr(target().size() + 1);
      if (entry.is_symlink())
        copied[name] = "-> " + fs::read_symlink(entry.path()).string();
      else if (entry.is_regular_file())
        copied[name] = Get(entry.path());
    }
    return copied;
  }
  using Texts = std::map<std::string, std::string>;
};

TEST_F(SnapshotLinksTest, SymbolicLinksAreKeptOnlyWhereTheyStayInTheSnapshot) {
  Put("agent/SOUL.md", "soul");
  Put("agent/agent.toml", "settings");
  Put("agent/wiki/page", "page");
  Put("agent/wiki/dir/deep", "deep");
  Link("page", "agent/wiki/same");
  Link("../SOUL.md", "agent/wiki/soul");
  Link("../../wiki/dir/../same", "agent/SKILLS/a/chain");
  Link("dir", "agent/wiki/folder");
  Link("../agent.toml", "agent/wiki/config");
  Link("../../outside/key", "agent/wiki/out");
  Link(path() + "/agent/wiki/page", "agent/wiki/absolute");
  Link("out", "agent/wiki/by-way-of-out");
  Link("nowhere", "agent/wiki/dangling");
  Link("loop", "agent/wiki/loop");
  Link("/proc/self/root", "agent/wiki/magic");
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Copied(), (Texts{{"SOUL.md", "soul"},
                             {"wiki/page", "page"},
                             {"wiki/dir/deep", "deep"},
                             {"wiki/same", "-> page"},
                             {"wiki/soul", "-> ../SOUL.md"},
                             {"SKILLS/a/chain", "-> ../../wiki/dir/../same"},
                             {"wiki/folder", "-> dir"}}));
  EXPECT_EQ(snapshot.warnings.size(), 7U);
  EXPECT_EQ(Entry(snapshot, "wiki").verdict, Verdict::kSafe);
  struct stat info = {};
  ASSERT_EQ(::stat((target() + "/wiki").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0555U) << "also where a link was removed";
}

TEST_F(SnapshotLinksTest, LinksBelowAnyPathAreJudgedToo) {
  fs::create_directories(path() + "/agent/wiki");
  UniqueFd at = sys::Open(path() + "/agent/wiki", O_RDONLY | O_DIRECTORY).value();
  const std::string name(200, 'd');
  for (int level = 0; level < 25; ++level) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    at = UniqueFd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  for (const auto& [link, target] : Texts{{"good", "../" + name}, {"out", "/etc/passwd"}})
    ASSERT_EQ(::symlinkat(target.c_str(), at.get(), link.c_str()), 0);
  const Snapshot snapshot = Run().value();
  ASSERT_EQ(snapshot.warnings.size(), 1U);
  EXPECT_NE(snapshot.warnings[0].find("/out"), std::string::npos) << snapshot.warnings[0];
}

TEST_F(SnapshotLinksTest, ALinkToAnEntryThatIsLeftOutGoesWithIt) {
  Link("../outside/key", "agent/SOUL.md");
  Link("../SOUL.md", "agent/wiki/soul");
  EXPECT_EQ(Run()->warnings.size(), 2U);
  EXPECT_TRUE(Copied().empty());
}

TEST_F(SnapshotLinksTest, FilesWithAllTheirNamesInsideAreKeptAndOthersAreNot) {
  Put("agent/wiki/page", "page");
  HardLink("agent/wiki/page", "agent/wiki/again");
  HardLink("agent/wiki/page", "agent/SKILLS/deep/third");
  Put("agent/wiki/half", "half");
  HardLink("agent/wiki/half", "agent/state/half");  // in the agent directory, not in the snapshot
  HardLink("outside/key", "agent/wiki/key");
  HardLink("outside/key", "agent/wiki/key2");
  LetTheClockTick();
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Copied(),
            (Texts{{"wiki/page", "page"}, {"wiki/again", "page"}, {"SKILLS/deep/third", "page"}}));
  EXPECT_EQ(snapshot.warnings.size(), 3U);
}

TEST_F(SnapshotLinksTest, LinksOfThisVeryMomentAreNotTrusted) {
  Put("agent/wiki/page", "page");
  HardLink("agent/wiki/page", "agent/wiki/again");
  EXPECT_EQ(Run()->warnings.size(), 2U);
  EXPECT_TRUE(Copied().empty());
}

TEST_F(SnapshotLinksTest, WithSkipADirectoryWithSomethingUnsafeIsLeftOutWhole) {
  Put("agent/wiki/page", "page");
  Put("agent/SKILLS/one", "one");
  Link("../wiki/page", "agent/SKILLS/page");
  Put("agent/SOUL.md", "soul");
  ASSERT_EQ(::mkfifo((agent() + "/wiki/pipe").c_str(), 0600), 0);
  Snapshot snapshot = Run({}, Subtree::kSkip).value();
  EXPECT_EQ(Entry(snapshot, "wiki").verdict, Verdict::kSkip);
  EXPECT_NE(Entry(snapshot, "wiki").note.find("wiki/pipe"), std::string::npos);
  EXPECT_EQ(Entry(snapshot, "SKILLS").verdict, Verdict::kSkip) << "its link leads to nothing now";
  EXPECT_EQ(Copied(), (Texts{{"SOUL.md", "soul"}}));
}

TEST_F(SnapshotLinksTest, WithSkipADirectoryWithNothingUnsafeStays) {
  Put("agent/wiki/page", "page");
  Link("page", "agent/wiki/same");
  EXPECT_TRUE(Run({}, Subtree::kSkip)->warnings.empty());
  EXPECT_EQ(Copied().size(), 2U);
}

// Somebody moves the one name of a linked secret from directory to directory, and directories too,
// to have it counted as often as it has names.
TEST_F(SnapshotLinksTest, NamesThatAreMovedWhileTheyAreCountedNeverMakeASetClosed) {
  for (const char* name : {"agent/SKILLS/a/x", "agent/wiki/b/x", "agent/wiki/c/x"}) Put(name, "x");
  HardLink("outside/key", "agent/SKILLS/a/key");
  LetTheClockTick();
  std::atomic<bool> done = false;
  std::thread mover([&] {
    const std::string from = agent() + "/SKILLS/a/key";
    const std::string to = agent() + "/wiki/b/key";
    while (!done) {
      (void)::rename(from.c_str(), to.c_str());
      (void)::rename((agent() + "/wiki/b").c_str(), (agent() + "/SKILLS/b").c_str());
      (void)::rename((agent() + "/SKILLS/b").c_str(), (agent() + "/wiki/b").c_str());
      (void)::rename(to.c_str(), from.c_str());
      ::usleep(50);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    Result<Snapshot> snapshot = Run();
    ASSERT_TRUE(snapshot.ok()) << snapshot.error().text;
    for (const auto& [name, text] : Copied()) ASSERT_EQ(text, "x") << name;
    ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
    UniqueFd to = sys::Open(target(), O_RDONLY | O_DIRECTORY).value();
    for (const char* top : {"SKILLS", "wiki"}) ASSERT_TRUE(RemoveTree(to.get(), top).ok());
  }
  done = true;
  mover.join();
}

// Directories alone are moved: the file's own times stay, and it has two names, one of them
// outside.
TEST_F(SnapshotLinksTest, ADirectoryThatIsMetTwiceMakesNoSetClosed) {
  Put("agent/wiki/b/x", "x");
  Put("agent/SKILLS/x", "x");
  HardLink("outside/key", "agent/wiki/b/key");
  LetTheClockTick();
  std::atomic<bool> done = false;
  std::thread mover([&] {
    while (!done) {
      (void)::rename((agent() + "/wiki/b").c_str(), (agent() + "/SKILLS/b").c_str());
      (void)::rename((agent() + "/SKILLS/b").c_str(), (agent() + "/wiki/b").c_str());
      ::usleep(20);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    Result<Snapshot> snapshot = Run();
    ASSERT_TRUE(snapshot.ok()) << snapshot.error().text;
    for (const auto& [name, text] : Copied()) ASSERT_EQ(text, "x") << name;
    ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
    UniqueFd to = sys::Open(target(), O_RDONLY | O_DIRECTORY).value();
    for (const char* top : {"SKILLS", "wiki"}) ASSERT_TRUE(RemoveTree(to.get(), top).ok());
  }
  done = true;
  mover.join();
}

TEST_F(SnapshotLinksTest, EachKindOfEntryHasItsVerdict) {
  Put("agent/file", "x");
  Put("agent/dir/x", "x");
  Put("agent/twice", "x");
  HardLink("agent/twice", "agent/again");
  Link("file", "agent/link");
  ASSERT_EQ(::mkfifo((agent() + "/pipe").c_str(), 0600), 0);
  const std::map<std::string, Reason> wanted = {{"file", Reason::kNone},
                                                {"dir", Reason::kWrongKind},
                                                {"twice", Reason::kHardlink},
                                                {"link", Reason::kSymlink},
                                                {"pipe", Reason::kSpecial}};
  UniqueFd dir = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
  for (const auto& [name, reason] : wanted)
    EXPECT_EQ(Judge(dir.get(), name, cell::EntryKind::kFile)->reason, reason) << name;
  EXPECT_EQ(Judge(dir.get(), "none", cell::EntryKind::kFile)->verdict, Verdict::kAbsent);
}

// The file that is mounted has two names, one of them outside; it is met twice inside.
TEST_F(SnapshotLinksTest, WhatIsMountedOnANameDoesNotHaveIt) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  HardLink("outside/key", "agent/wiki/key");
  Put("agent/wiki/place", "x");
  Put("agent/wiki/page", "page");
  HardLink("agent/wiki/page", "agent/wiki/again");
  LetTheClockTick();
  int status = test::InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount((path() + "/outside/key").c_str(), (agent() + "/wiki/place").c_str(), nullptr,
                MS_BIND, nullptr) != 0)
      return 91;
    EXPECT_EQ(Get(agent() + "/wiki/place"), "the host's secret") << "control";
    const Snapshot snapshot = Run().value();
    EXPECT_EQ(Copied(), (Texts{{"wiki/page", "page"}, {"wiki/again", "page"}}));
    EXPECT_EQ(snapshot.warnings.size(), 2U);
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(SnapshotLinksTest, AMountOverAFileOrADirectoryIsNamed) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  Put("agent/SOUL.md", "x");
  fs::create_directories(agent() + "/wiki");
  int status = test::InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount((path() + "/outside/key").c_str(), (agent() + "/SOUL.md").c_str(), nullptr, MS_BIND,
                nullptr) != 0 ||
        ::mount((path() + "/outside").c_str(), (agent() + "/wiki").c_str(), nullptr, MS_BIND,
                nullptr) != 0)
      return 91;
    Snapshot snapshot = Run().value();
    bool both = Entry(snapshot, "SOUL.md").reason == Reason::kMount &&
                Entry(snapshot, "wiki").reason == Reason::kMount;
    return both && Copied().empty() ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::mounts
