#include "launcher/mounts/stored_snapshot.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "launcher/mounts/snapshot_record.h"
#include "launcher/sys/file.h"
#include "tests/support/syscall_faults.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/launcher/mounts/slow_writer.h"

namespace taskcell::mounts {
namespace {

namespace fs = std::filesystem;

class StoredSnapshotTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(scratch_.At("agent"));
    fs::create_directory(scratch_.At("store"));
    ASSERT_EQ(::chmod(scratch_.At("store").c_str(), 0700), 0);
    scratch_.Put("agent/SOUL.md", "soul");
    scratch_.Put("agent/wiki/a/page", "page");
    scratch_.Put("agent/wiki/other", "egap");
    scratch_.Put("outside/key", "the host's secret");
  }

  Result<StoredSnapshot> Take(const std::string& agent = "agent", Subtree subtree = Subtree::kPrune,
                              const SnapshotBounds& bounds = {}) const {
    UniqueFd store = sys::Open(scratch_.At("store"), O_RDONLY | O_DIRECTORY).value();
    UniqueFd from = sys::Open(scratch_.At(agent), O_RDONLY | O_DIRECTORY).value();
    return StoredSnapshot::Take({store.get(), scratch_.At("store")}, from.get(), subtree, bounds);
  }
  // Takes one, and leaves it in the store. A machine that stands still may look like one that
  // changed a file.
  StoredSnapshot Kept(const std::string& agent = "agent") const {
    constexpr int kTries = 3;
    for (int tries = 1;; ++tries) {
      LetItSettle();
      StoredSnapshot taken = Take(agent).value();
      StoredSnapshot again = Take(agent).value();
      EXPECT_TRUE(taken.Release(true).ok());
      if (again.is_reused()) return again;
      if (tries < kTries) continue;
      ADD_FAILURE() << "control: an unchanged one is reused";
      return again;
    }
  }
  // Past the time within which a change may leave no trace.
  static void LetItSettle() { ::usleep(150'000); }

  static std::map<std::string, std::string> Texts(const StoredSnapshot& taken) {
    std::map<std::string, std::string> texts;
    for (const auto& entry : fs::recursive_directory_iterator(taken.path())) {
      if (entry.is_directory()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      texts[entry.path().string().substr(taken.path().size() + 1)] = {
          std::istreambuf_iterator<char>(in), {}};
    }
    return texts;
  }
  std::set<std::string> Stored() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(scratch_.At("store")))
      names.insert(entry.path().filename());
    return names;
  }

  test::TempDirectory scratch_{"stored-snapshot"};
};

TEST_F(StoredSnapshotTest, AnUnchangedDirectoryIsLookedAtAndNeverCopiedAgain) {
  scratch_.Link("../../outside/key", "agent/wiki/out");
  LetItSettle();
  StoredSnapshot first = Take().value();
  EXPECT_FALSE(first.is_reused());
  const auto texts = Texts(first);
  EXPECT_EQ(texts, (std::map<std::string, std::string>{
                       {"SOUL.md", "soul"}, {"wiki/a/page", "page"}, {"wiki/other", "egap"}}));
  ASSERT_EQ(first.content().warnings.size(), 1U);
  const std::string path = first.path();
  ASSERT_TRUE(first.Release(true).ok());
  int status = test::InChild([&] {
    // Nothing can be made or copied.
    if (!test::InstallFaults(
            {{SYS_copy_file_range, EIO}, {SYS_ioctl, EIO}, {SYS_mkdirat, EIO}, {SYS_write, EIO}}))
      return 90;
    Result<StoredSnapshot> again = Take();
    if (!again.ok()) return 1;
    bool same = again->is_reused() && again->path() == path && Texts(again.value()) == texts &&
                again->content().warnings == first.content().warnings &&
                again->content().entries.size() == kAgentEntries.size() &&
                again->content().copied == first.content().copied && again->content().bytes == 12;
    return same ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(StoredSnapshotTest, EveryChangeLeadsToANewCopy) {
  const std::string page = scratch_.At("agent/wiki/a/page");
  const std::vector<std::pair<std::string, std::function<void()>>> changes = {
      {"content of the same size, with the old time",
       [&] {
         struct stat before = {};
         ASSERT_EQ(::stat(page.c_str(), &before), 0);
         std::ofstream(page) << "PAGE";
         const struct timespec times[2] = {before.st_atim, before.st_mtim};
         ASSERT_EQ(::utimensat(AT_FDCWD, page.c_str(), times, 0), 0);
       }},
      {"another file of the same size and time",
       [&] {
         fs::copy_file(page, page + ".new");
         fs::last_write_time(page + ".new", fs::last_write_time(page));
         fs::rename(page + ".new", page);
       }},
      {"two files exchanged",
       [&] {
         ASSERT_EQ(::renameat2(AT_FDCWD, page.c_str(), AT_FDCWD,
                               scratch_.At("agent/wiki/other").c_str(), RENAME_EXCHANGE),
                   0);
       }},
      {"a new file", [&] { scratch_.Put("agent/wiki/new", "x"); }},
      {"a file less", [&] { fs::remove(scratch_.At("agent/wiki/new")); }},
      {"a new entry at the top", [&] { scratch_.Put("agent/IDENTITY.md", "x"); }},
      {"an empty directory more", [&] { fs::create_directory(scratch_.At("agent/wiki/empty")); }},
      {"another mode", [&] { ASSERT_EQ(::chmod(page.c_str(), 0640), 0); }},
      {"a link to a file from elsewhere",
       [&] { scratch_.HardLink("agent/wiki/a/page", "outside/page"); }},
      {"that link gone", [&] { fs::remove(scratch_.At("outside/page")); }},
      {"a link for a file",
       [&] {
         fs::remove(page);
         fs::create_symlink("../other", page);
       }},
      {"the link's target",
       [&] {
         fs::remove(page);
         fs::create_symlink("../empty", page);
       }},
  };
  for (const auto& [what, change] : changes) {
    const std::string before = Kept().path();
    change();
    LetItSettle();
    StoredSnapshot after = Take().value();
    EXPECT_FALSE(after.is_reused()) << what;
    EXPECT_NE(after.path(), before) << what;
  }
}

TEST_F(StoredSnapshotTest, OfOtherRulesOrAnotherDirectoryNoCopyIsUsed) {
  StoredSnapshot kept = Kept();
  EXPECT_FALSE(Take("agent", Subtree::kSkip)->is_reused());
  fs::copy(scratch_.At("agent"), scratch_.At("twin"), fs::copy_options::recursive);
  LetItSettle();
  EXPECT_FALSE(Take("twin")->is_reused());
  EXPECT_TRUE(Take()->is_reused());
}

TEST_F(StoredSnapshotTest, WhatChangedOnlyJustNowIsCopiedEachTime) {
  LetItSettle();
  scratch_.Put("agent/wiki/a/page", "just");
  StoredSnapshot first = Take().value();
  EXPECT_EQ(Texts(first).at("wiki/a/page"), "just");
  EXPECT_TRUE(first.Release(true).ok());
  EXPECT_TRUE(Stored().empty()) << "it is of use to nobody";
}

// A file that cannot be read now may be readable next time, without a change of its own.
TEST_F(StoredSnapshotTest, WhatWasLeftOutForNowIsTriedAgain) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  int status = test::InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(scratch_.At("outside/key").c_str(), scratch_.At("agent/SOUL.md").c_str(), nullptr,
                MS_BIND, nullptr) != 0)
      return 91;
    LetItSettle();
    StoredSnapshot first = Take().value();
    if (first.content().warnings.size() != 1 || !first.Release(true).ok()) return 1;
    return Stored().empty() ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(StoredSnapshotTest, ACopyInUseStaysWhileAnotherTakesItsPlace) {
  StoredSnapshot old = Kept();
  scratch_.Put("agent/SOUL.md", "new soul");
  LetItSettle();
  StoredSnapshot current = Take().value();
  EXPECT_FALSE(current.is_reused());
  EXPECT_EQ(Texts(old).at("SOUL.md"), "soul") << "whoever uses it sees what it was";
  EXPECT_EQ(Texts(current).at("SOUL.md"), "new soul");
  EXPECT_EQ(Stored().size(), 2U);
  EXPECT_TRUE(old.Release(true).ok());
  EXPECT_TRUE(current.Release(true).ok());
  EXPECT_EQ(Take()->path(), current.path());
  EXPECT_EQ(Stored().size(), 1U) << "nobody used the old one any more";
}

TEST_F(StoredSnapshotTest, WhatIsNotKeptGoesUnlessSomebodyUsesIt) {
  LetItSettle();
  StoredSnapshot first = Take().value();
  {
    StoredSnapshot again = Take().value();
    EXPECT_TRUE(again.is_reused());
    EXPECT_TRUE(first.Release(false).ok());
    EXPECT_EQ(Texts(again).at("SOUL.md"), "soul");
  }
  EXPECT_EQ(Stored().size(), 1U);
  EXPECT_TRUE(Take()->is_reused());
  scratch_.Put("agent/SOUL.md", "new");
  { StoredSnapshot dropped = Take().value(); }
  EXPECT_TRUE(Stored().empty());
}

TEST_F(StoredSnapshotTest, ARebootOrAClockSetBackMakesACopyWorthless) {
  const std::map<std::string, std::function<void(SnapshotRecord&)>> spoils = {
      {"another boot", [](SnapshotRecord& record) { record.boot_id[0] ^= 1; }},
      {"a clock set back", [](SnapshotRecord& record) { record.clock_offset_ms += 2000; }},
      {"other bounds", [](SnapshotRecord& record) { ++record.bounds.entries; }},
      {"another inventory", [](SnapshotRecord& record) { record.inventory += "x"; }},
  };
  for (const auto& [what, spoil] : spoils) {
    std::string record_path;
    {
      StoredSnapshot kept = Kept();
      record_path = fs::path(kept.path()).parent_path() / "record";
    }
    std::ifstream in(record_path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    SnapshotRecord record = ParseRecord(bytes).value();
    spoil(record);
    std::ofstream(record_path, std::ios::binary) << EncodeRecord(record).value();
    EXPECT_FALSE(Take()->is_reused()) << what;
  }
}

TEST_F(StoredSnapshotTest, ARecordThatIsCutOffIsNone) {
  std::string record_path;
  {
    StoredSnapshot kept = Kept();
    record_path = fs::path(kept.path()).parent_path() / "record";
  }
  fs::resize_file(record_path, fs::file_size(record_path) - 1);
  EXPECT_FALSE(Take()->is_reused());
}

TEST_F(StoredSnapshotTest, OfManyOnlyTheLatestStayAndNoneForLong) {
  for (std::size_t i = 0; i < kMaxStoredSnapshots + 4; ++i) {
    const std::string agent = Text("many/", i);
    scratch_.Put(agent + "/SOUL.md", "x");
  }
  LetItSettle();
  for (std::size_t i = 0; i < kMaxStoredSnapshots + 4; ++i)
    ASSERT_TRUE(Take(Text("many/", i))->Release(true).ok());
  EXPECT_EQ(Stored().size(), kMaxStoredSnapshots + 1) << "and the one in use";
  EXPECT_TRUE(Take(Text("many/", kMaxStoredSnapshots + 3))->is_reused());
  EXPECT_FALSE(Take("many/0")->is_reused());
  struct timespec times[2] = {};
  ASSERT_EQ(::clock_gettime(CLOCK_REALTIME, &times[0]), 0);
  times[0].tv_sec -= kMaxUnusedSeconds + 60;
  times[1] = times[0];
  for (const std::string& name : Stored())
    ASSERT_EQ(::utimensat(AT_FDCWD, scratch_.At("store/" + name).c_str(), times, 0), 0);
  { StoredSnapshot other = Take("many/0").value(); }
  EXPECT_TRUE(Stored().empty());
}

// The kernel ends who writes past RLIMIT_FSIZE: here in the middle of a file, or of the record,
// which is larger than every file.
TEST_F(StoredSnapshotTest, AnInterruptedCopyIsNeverUsedAndGoes) {
  constexpr std::size_t kMany = 100;  // a record has ten bytes and more for each
  for (std::size_t i = 0; i < kMany; ++i)
    scratch_.Put(Text("agent/wiki/many/", i), std::string(64, 'x'));
  scratch_.Put("agent/wiki/many/middle", std::string(1024, 'x'));
  LetItSettle();
  for (rlim_t limit : {1000U, 1024U}) {
    int status = test::InChild([&] {
      const struct rlimit none = {0, 0};
      const struct rlimit size = {limit, limit};
      if (::setrlimit(RLIMIT_CORE, &none) != 0 || ::setrlimit(RLIMIT_FSIZE, &size) != 0) return 90;
      return Take().ok() ? 1 : 2;
    });
    EXPECT_EQ(status, 128 + SIGXFSZ) << limit;
    ASSERT_EQ(Stored().size(), 1U) << "control: it left something";
    const std::string left = scratch_.At("store/" + *Stored().begin());
    EXPECT_EQ(fs::exists(left + "/tree/wiki/many/middle"), true);
    EXPECT_EQ(fs::exists(left + "/record.new"), limit == 1024);
    StoredSnapshot taken = Take().value();
    EXPECT_FALSE(taken.is_reused());
    EXPECT_EQ(Texts(taken).size(), kMany + 4);
    EXPECT_EQ(Stored().size(), 1U) << "nothing else is left";
  }
}

TEST_F(StoredSnapshotTest, WithoutRoomOnTheDiskThereIsNoSnapshotAndNothingIsLeft) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  scratch_.Put("agent/wiki/large", std::string(256 * 1024, 'x'));
  LetItSettle();
  // Too little for the files, and too little for the record.
  for (const char* size : {"size=128k,mode=700", "size=268k,mode=700"}) {
    int status = test::InChild([&] {
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount("tmpfs", scratch_.At("store").c_str(), "tmpfs", 0, size) != 0)
        return 91;
      Result<StoredSnapshot> taken = Take();
      if (taken.ok() || taken.error().err != ENOSPC) return 1;
      return Stored().empty() ? 0 : 2;
    });
    EXPECT_EQ(status, 0) << size;
  }
}

// Whoever writes the agent directory tries to have a copy kept under the name of another content.
TEST_F(StoredSnapshotTest, ADirectoryThatIsChangedAllTheTimeNeverPoisonsTheStore) {
  std::atomic<bool> done = false;
  const std::string page = scratch_.At("agent/wiki/a/page");
  const std::string other = scratch_.At("agent/wiki/other");
  std::thread attacker([&] {
    struct stat info = {};
    for (unsigned turn = 0; !done; ++turn) {
      if (::stat(page.c_str(), &info) != 0) continue;
      {
        UniqueFd fd(::open(page.c_str(), O_WRONLY | O_CLOEXEC));
        (void)!::write(fd.get(), turn % 2 == 0 ? "evil" : "page", 4);
      }
      const struct timespec times[2] = {info.st_atim, info.st_mtim};
      (void)::utimensat(AT_FDCWD, page.c_str(), times, 0);
      (void)::renameat2(AT_FDCWD, page.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
      (void)::renameat2(AT_FDCWD, page.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
      // Now and then a rest in which a copy can be kept.
      ::usleep(turn % 8 == 0 ? 250'000 : 500);
    }
  });
  int reused = 0;
  int copied = 0;
  for (int round = 0; round < 400; ++round) {
    StoredSnapshot taken = Take().value();
    ++(taken.is_reused() ? reused : copied);
    for (const auto& [name, text] : Texts(taken))
      ASSERT_TRUE(text == "soul" || text == "evil" || text == "page" || text == "egap") << text;
    ASSERT_TRUE(taken.Release(true).ok());
    ::usleep(1000);
  }
  done = true;
  attacker.join();
  EXPECT_GT(copied, 0) << "control: both happened";
  EXPECT_GT(reused, 0) << "control: both happened";
  std::ofstream(page) << "last";
  LetItSettle();
  for (int times = 0; times < 2; ++times) {
    StoredSnapshot taken = Take().value();
    EXPECT_EQ(Texts(taken).at("wiki/a/page"), "last");
    EXPECT_TRUE(taken.Release(true).ok());
  }
}

TEST_F(StoredSnapshotTest, ACopyOfAFileThatIsOpenForWritingServesOnce) {
  UniqueFd writer = sys::Open(scratch_.At("agent/wiki/a/page"), O_WRONLY).value();
  LetItSettle();
  StoredSnapshot first = Take().value();
  EXPECT_EQ(Texts(first).at("wiki/a/page"), "page") << "it is copied all the same";
  ASSERT_TRUE(first.Release(true).ok());
  StoredSnapshot second = Take().value();
  EXPECT_FALSE(second.is_reused());
  ASSERT_TRUE(second.Release(true).ok());
  writer.Reset();
  (void)Kept();
}

TEST_F(StoredSnapshotTest, ACopyInTheMiddleOfAWriteIsNeverReused) {
  const std::string before(2 * SlowWriter::kPage, 'a');
  const std::string after(2 * SlowWriter::kPage, 'b');
  scratch_.Put("agent/SOUL.md", before);
  SlowWriter writer(scratch_.At("agent/SOUL.md"), after);
  TASKCELL_REQUIRE(writer.Stands(), "needs userfaultfd(2) of the kernel's own accesses: root");
  LetItSettle();
  StoredSnapshot first = Take().value();
  ASSERT_TRUE(first.Release(true).ok());
  ASSERT_TRUE(writer.Finish());
  EXPECT_EQ(Texts(Take().value()).at("SOUL.md"), after);
}

// As in an agent directory of another user, or on a file system without leases.
TEST_F(StoredSnapshotTest, WithoutLeasesOnlyWhatWasLeftAloneForLongIsReused) {
  int status = test::InChild([this] {
    if (!test::InstallFaults({{SYS_fcntl, EACCES, 1, F_SETLEASE}})) return 90;
    LetItSettle();
    SnapshotBounds bounds;
    auto take = [&] { return Take("agent", Subtree::kPrune, bounds); };
    if (!take()->Release(true).ok() || take()->is_reused()) return 1;
    bounds.longest_write_s = 0;  // as if that long had passed
    if (!take()->Release(true).ok()) return 2;
    return take()->is_reused() ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::mounts
