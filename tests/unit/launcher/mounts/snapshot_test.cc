#include "launcher/mounts/snapshot.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"
#include "tests/unit/launcher/mounts/snapshot_fixture.h"

namespace taskcell::mounts {
namespace {

TEST_F(SnapshotTest, SafeEntriesAreCopiedReadOnlyAndNothingElseIs) {
  Put("agent/SOUL.md", "soul");
  Put("agent/AGENTS.md", "");
  Put("agent/SKILLS/a/deep.md", "skill");
  Put("agent/.mcp.json", "key");
  Put("agent/state/db", "state");
  Snapshot snapshot = Run().value();
  ASSERT_EQ(snapshot.entries.size(), kAgentEntries.size());
  EXPECT_EQ(Entry(snapshot, "SOUL.md").verdict, Verdict::kSafe);
  EXPECT_EQ(Entry(snapshot, "wiki").verdict, Verdict::kAbsent);
  EXPECT_TRUE(snapshot.warnings.empty());
  EXPECT_EQ(snapshot.bytes, 9U);
  EXPECT_EQ(Get(target() + "/SOUL.md"), "soul");
  EXPECT_EQ(Get(target() + "/SKILLS/a/deep.md"), "skill");
  std::vector<std::string> top;
  for (const auto& entry : fs::directory_iterator(target())) top.push_back(entry.path().filename());
  EXPECT_EQ(top.size(), 3U);
  struct stat info = {};
  ASSERT_EQ(::stat((target() + "/SOUL.md").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0444U);
  ASSERT_EQ(::stat((target() + "/SKILLS/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0555U);
  ASSERT_EQ(::stat(target().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0555U);
}

TEST_F(SnapshotTest, EveryFormOfSymbolicLinkIsLeftOut) {
  fs::create_directories(agent() + "/docs");
  Put("agent/real.md", "ok");
  Put("agent/GEMINI.md", "ok");
  const std::map<std::string, std::string> links = {{"SOUL.md", "../outside/key"},
                                                    {"IDENTITY.md", path() + "/outside/key"},
                                                    {"CLAUDE.md", "nowhere"},
                                                    {"AGENTS.md", "real.md"},
                                                    {"wiki", "docs"},
                                                    {"SKILLS", "/proc/self/root"},
                                                    {"CONTRACT.toml", "/dev/null"}};
  for (const auto& [name, to] : links)
    ASSERT_EQ(::symlink(to.c_str(), (agent() + "/" + name).c_str()), 0);
  Snapshot snapshot = Run().value();
  for (const auto& [name, to] : links) {
    EXPECT_EQ(Entry(snapshot, name).verdict, Verdict::kSkip) << name;
    EXPECT_EQ(Entry(snapshot, name).reason, Reason::kSymlink) << name;
  }
  EXPECT_EQ(Entry(snapshot, "GEMINI.md").verdict, Verdict::kSafe);
  EXPECT_EQ(snapshot.warnings.size(), links.size());
}

TEST_F(SnapshotTest, HardLinksAreLeftOutAtTheTopAndInside) {
  fs::create_directories(agent() + "/wiki");
  ASSERT_EQ(::link((path() + "/outside/key").c_str(), (agent() + "/SOUL.md").c_str()), 0);
  ASSERT_EQ(::link((path() + "/outside/key").c_str(), (agent() + "/wiki/key").c_str()), 0);
  Put("agent/wiki/page", "page");
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Entry(snapshot, "SOUL.md").reason, Reason::kHardlink);
  EXPECT_EQ(Entry(snapshot, "wiki").verdict, Verdict::kSafe);
  EXPECT_FALSE(fs::exists(target() + "/wiki/key"));
  EXPECT_EQ(Get(target() + "/wiki/page"), "page");
  EXPECT_EQ(snapshot.warnings.size(), 2U);
}

TEST_F(SnapshotTest, SpecialFilesAreNeverOpenedForReading) {
  fs::create_directories(agent() + "/wiki");
  ASSERT_EQ(::mkfifo((agent() + "/SOUL.md").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((agent() + "/wiki/pipe").c_str(), 0600), 0);
  int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string path = agent() + "/CONTRACT.toml";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  // NOLINTNEXTLINE: the socket API takes a cast address
  ASSERT_EQ(::bind(socket, reinterpret_cast<struct sockaddr*>(&address), sizeof address), 0);
  std::atomic<bool> done = false;
  std::atomic<int> readers = 0;
  // A writer that opens a FIFO without blocking succeeds only while somebody reads it.
  std::thread watcher([&] {
    while (!done) {
      int fd = ::open((agent() + "/SOUL.md").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      if (fd >= 0) {
        ++readers;
        ::close(fd);
      }
    }
  });
  Snapshot snapshot = Run().value();
  for (int round = 0; round < 50; ++round) {
    UniqueFd from = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
    EXPECT_EQ(Judge(from.get(), "SOUL.md", cell::EntryKind::kFile).value().reason,
              Reason::kSpecial);
  }
  done = true;
  watcher.join();
  ::close(socket);
  EXPECT_EQ(readers, 0);
  EXPECT_EQ(Entry(snapshot, "SOUL.md").reason, Reason::kSpecial);
  EXPECT_EQ(Entry(snapshot, "CONTRACT.toml").reason, Reason::kSpecial);
  EXPECT_EQ(Entry(snapshot, "wiki").verdict, Verdict::kSafe);
  EXPECT_TRUE(fs::is_empty(target() + "/wiki"));
}

TEST_F(SnapshotTest, WrongKindIsNamedWithWhatWasExpected) {
  fs::create_directories(agent() + "/CLAUDE.md");
  Put("agent/wiki", "not a directory");
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Entry(snapshot, "CLAUDE.md").reason, Reason::kWrongKind);
  EXPECT_NE(Entry(snapshot, "CLAUDE.md").note.find("expected a regular file"), std::string::npos);
  EXPECT_EQ(Entry(snapshot, "wiki").reason, Reason::kWrongKind);
  EXPECT_FALSE(fs::exists(agent() + "/IDENTITY.md"));
}

TEST_F(SnapshotTest, AnEmptyDirectoryForAFileMayBeAContainerEnginesAndAFullOneIsNot) {
  constexpr uid_t kUser = 12345;
  fs::create_directories(agent() + "/CLAUDE.md");
  Put("agent/GEMINI.md/keep", "x");
  auto hinted = [this](std::string_view name) {
    const SnapshotEntry entry = Entry(Run().value(), name);
    EXPECT_EQ(entry.reason, Reason::kWrongKind);
    EXPECT_EQ(::chmod(target().c_str(), 0700), 0);
    return entry.note.find("container engine may have made it") != std::string::npos;
  };
  EXPECT_TRUE(hinted("CLAUDE.md"));
  EXPECT_FALSE(hinted("GEMINI.md"));
  if (::geteuid() != 0) return;
  // Without root an engine makes it as the user it runs for; nobody else's is an engine's.
  ASSERT_EQ(::chown((agent() + "/CLAUDE.md").c_str(), kUser, kUser), 0);
  EXPECT_FALSE(hinted("CLAUDE.md"));
  ASSERT_EQ(::chown(agent().c_str(), kUser, kUser), 0);
  EXPECT_TRUE(hinted("CLAUDE.md"));
}

TEST_F(SnapshotTest, FileOfExactlyTheByteBoundIsCopiedAndOneByteMoreRefusesTheDirectory) {
  Put("agent/SOUL.md", "");
  ASSERT_EQ(::truncate((agent() + "/SOUL.md").c_str(), kMaxSnapshotBytes), 0);
  EXPECT_EQ(Run().value().bytes, kMaxSnapshotBytes);
  ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
  fs::remove(target() + "/SOUL.md");
  ASSERT_EQ(::truncate((agent() + "/SOUL.md").c_str(), kMaxSnapshotBytes + 1), 0);
  Result<Snapshot> refused = Run();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "agent_dir_unmountable");
}

TEST_F(SnapshotTest, DirectoryOverTheDepthBoundIsLeftOutWhole) {
  std::string deep = "agent/wiki";
  for (int level = 1; level < kMaxSnapshotDepth; ++level) deep += "/d";
  fs::create_directories(path() + "/" + deep);
  EXPECT_EQ(Entry(Run().value(), "wiki").verdict, Verdict::kSafe);
  ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
  UniqueFd to = sys::Open(target(), O_RDONLY | O_DIRECTORY).value();
  ASSERT_TRUE(RemoveTree(to.get(), "wiki").ok());
  fs::create_directories(path() + "/" + deep + "/d");
  Put("agent/SKILLS/kept", "kept");
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Entry(snapshot, "wiki").verdict, Verdict::kSkip);
  EXPECT_NE(Entry(snapshot, "wiki").note.find("32 levels"), std::string::npos);
  EXPECT_FALSE(fs::exists(target() + "/wiki"));
  EXPECT_EQ(Get(target() + "/SKILLS/kept"), "kept");
}

TEST_F(SnapshotTest, DirectoryOverTheEntryBoundIsLeftOutAndTheOtherIsKept) {
  EXPECT_EQ(SnapshotBounds().entries, 20000U);
  SnapshotBounds bounds;
  bounds.entries = 50;
  fs::create_directories(agent() + "/SKILLS");
  for (std::size_t i = 0; i + 1 < bounds.entries; ++i) std::ofstream(Text(agent(), "/SKILLS/", i));
  EXPECT_EQ(Run(bounds).value().copied, bounds.entries);
  ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
  UniqueFd to = sys::Open(target(), O_RDONLY | O_DIRECTORY).value();
  ASSERT_TRUE(RemoveTree(to.get(), "SKILLS").ok());
  std::ofstream(agent() + "/SKILLS/one-more");
  Put("agent/wiki/kept", "kept");
  Snapshot snapshot = Run(bounds).value();
  EXPECT_EQ(Entry(snapshot, "SKILLS").verdict, Verdict::kSkip);
  EXPECT_EQ(Get(target() + "/wiki/kept"), "kept");
}

// The bound that is in force where nobody gives another.
TEST_F(SnapshotTest, TwentyThousandEntriesAreCopiedAndOneMoreIsNot) {
  fs::create_directories(agent() + "/SKILLS");
  for (std::size_t i = 0; i + 1 < kMaxSnapshotEntries; ++i)
    std::ofstream(Text(agent(), "/SKILLS/", i));
  EXPECT_EQ(Run().value().copied, kMaxSnapshotEntries);
  ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
  UniqueFd to = sys::Open(target(), O_RDONLY | O_DIRECTORY).value();
  ASSERT_TRUE(RemoveTree(to.get(), "SKILLS").ok());
  std::ofstream(agent() + "/SKILLS/one-more");
  EXPECT_EQ(Entry(Run().value(), "SKILLS").verdict, Verdict::kSkip);
}

TEST_F(SnapshotTest, NamesWithControlBytesPrintEscapedInWarnings) {
  fs::create_directories(agent() + "/wiki");
  ASSERT_EQ(::symlink("/etc/passwd", (agent() + "/wiki/ln\nk\x1b").c_str()), 0);
  Snapshot snapshot = Run().value();
  ASSERT_EQ(snapshot.warnings.size(), 1U);
  EXPECT_NE(snapshot.warnings[0].find("wiki/ln\\nk\\x1b"), std::string::npos)
      << snapshot.warnings[0];
}

TEST_F(SnapshotTest, SixtyFourWarningsAreNamedAndOneMoreSaysThatThereAreOthers) {
  constexpr std::size_t kNamed = 64;
  const std::string more = "more entries were left out than are listed here";
  fs::create_directories(agent() + "/wiki");
  const UniqueFd to = sys::Open(target(), O_RDONLY | O_DIRECTORY).value();
  for (std::size_t made = 1; made <= kNamed + 2; ++made) {
    ASSERT_EQ(::mkfifo(Text(agent(), "/wiki/", made).c_str(), 0600), 0);
    if (made < kNamed) continue;
    const std::vector<std::string> warnings = Run()->warnings;
    ASSERT_EQ(warnings.size(), std::min(made, kNamed + 1));
    EXPECT_EQ(std::count(warnings.begin(), warnings.end(), more), made > kNamed ? 1 : 0);
    EXPECT_EQ(warnings.back() == more, made > kNamed);
    ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
    ASSERT_TRUE(RemoveTree(to.get(), "wiki").ok());
  }
}

// A swapper exchanges a good file with a link to a secret as fast as it can: whatever the verdict,
// the secret is never copied.
TEST_F(SnapshotTest, LinkSwappedInDuringTheCopyNeverBringsTheSecretIn) {
  Put("agent/SOUL.md", "good");
  ASSERT_EQ(::symlink("../outside/key", (agent() + "/swap").c_str()), 0);
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    while (!done)
      (void)::renameat2(AT_FDCWD, (agent() + "/SOUL.md").c_str(), AT_FDCWD,
                        (agent() + "/swap").c_str(), RENAME_EXCHANGE);
  });
  int copied = 0;
  for (int round = 0; round < 3000; ++round) {
    Result<Snapshot> snapshot = Run();
    ASSERT_TRUE(snapshot.ok()) << snapshot.error().text;
    if (Entry(snapshot.value(), "SOUL.md").verdict == Verdict::kSafe) {
      ++copied;
      ASSERT_EQ(Get(target() + "/SOUL.md"), "good");
    }
    ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
    fs::remove(target() + "/SOUL.md");
  }
  done = true;
  swapper.join();
  EXPECT_GT(copied, 0);
}

TEST_F(SnapshotTest, FileThatKeepsChangingIsLeftOut) {
  constexpr std::size_t kSize = 32U << 20U;  // so long a copy that the writer gets its turn
  Put("agent/SOUL.md", std::string(kSize, 'a'));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    char fill = 'b';
    while (!done) {
      UniqueFd fd = sys::Open(agent() + "/SOUL.md", O_WRONLY).value();
      // In pieces: one call sets the times of the file only once, when it begins.
      const std::string piece(65536, fill);
      for (std::size_t at = 0; at < kSize && !done; at += piece.size())
        ASSERT_TRUE(sys::WriteAll(fd.get(), piece).ok());
      fill = fill == 'z' ? 'a' : static_cast<char>(fill + 1);
    }
  });
  int left_out = 0;
  for (int round = 0; round < 5 || (left_out == 0 && round < 500); ++round) {
    Snapshot snapshot = Run().value();
    if (Entry(snapshot, "SOUL.md").verdict == Verdict::kSkip) {
      ++left_out;
      EXPECT_EQ(Entry(snapshot, "SOUL.md").reason, Reason::kRace);
    }
    ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
    fs::remove(target() + "/SOUL.md");
  }
  done = true;
  writer.join();
  EXPECT_GT(left_out, 0);
}

TEST_F(SnapshotTest, UnreadableFileIsLeftOut) {
  Put("agent/SOUL.md", "x");
  ASSERT_EQ(::chmod((agent() + "/SOUL.md").c_str(), 0), 0);
  int status = test::InChild([this] {
    cap_t none = ::cap_init();  // an owner without capabilities, also where the test is root
    if (::cap_set_proc(none) != 0) return 2;
    ::cap_free(none);
    return Entry(Run().value(), "SOUL.md").reason == Reason::kUnreadable ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(SnapshotTest, RemoveTreeNeverFollowsLinks) {
  fs::create_directories(path() + "/doomed/inner");
  ASSERT_EQ(::symlink("../../outside", (path() + "/doomed/inner/out").c_str()), 0);
  ASSERT_EQ(::chmod((path() + "/doomed/inner").c_str(), 0555), 0);
  UniqueFd dir = sys::Open(path(), O_RDONLY | O_DIRECTORY).value();
  EXPECT_TRUE(RemoveTree(dir.get(), "doomed").ok());
  EXPECT_FALSE(fs::exists(path() + "/doomed"));
  EXPECT_EQ(Get(path() + "/outside/key"), "the host's secret");
  EXPECT_TRUE(RemoveTree(dir.get(), "doomed").ok());
}

}  // namespace
}  // namespace taskcell::mounts
