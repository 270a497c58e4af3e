#include "launcher/mounts/bounded_snapshot.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "launcher/mounts/child_work.h"
#include "launcher/mounts/snapshot_record.h"
#include "launcher/sys/file.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"
#include "tests/support/hung_files.h"
#include "tests/support/temp_directory.h"
#include "tests/support/wait_for.h"
#include "tests/unit/launcher/mounts/slow_writer.h"

namespace taskcell::mounts {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kShortMs = 200;
// Far below kSnapshotTimeLimit, and enough for a machine that is busy.
constexpr std::chrono::seconds kSoon{10};

// Work that never ends.
Result<WorkResult> Hang() {
  while (true) ::pause();
}

TEST(ChildWorkTest, BytesAndDescriptorsComeBack) {
  bool is_gone = false;
  auto work = []() -> Result<WorkResult> {
    WorkResult made;
    made.bytes = std::string(300'000, 'b');  // more than a packet holds
    made.passed.push_back(TRY(sys::Open("/etc/hostname", O_PATH)));
    return made;
  };
  Result<WorkResult> done = DoInChild(work, {60'000, -1, {}}, is_gone);
  ASSERT_TRUE(done.ok()) << done.error().text;
  EXPECT_EQ(done->bytes, std::string(300'000, 'b'));
  ASSERT_EQ(done->passed.size(), 1U);
  struct stat passed = sys::Stat(done->passed[0].get()).value();
  EXPECT_EQ(passed.st_ino, sys::StatAt(AT_FDCWD, "/etc/hostname")->st_ino);
  EXPECT_TRUE(is_gone);
}

TEST(ChildWorkTest, AnErrorComesBackWhole) {
  bool is_gone = false;
  auto work = []() -> Result<WorkResult> {
    return Error(Kind::kViolation, "too much", EFBIG).Coded("agent_dir_unmountable");
  };
  Result<WorkResult> done = DoInChild(work, {60'000, -1, {}}, is_gone);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, Kind::kViolation);
  EXPECT_EQ(done.error().text, "too much");
  EXPECT_EQ(done.error().err, EFBIG);
  EXPECT_EQ(done.error().code, "agent_dir_unmountable");
}

TEST(ChildWorkTest, WorkThatHangsEndsAtTheLimitAndItsPlaceIsNamed) {
  sys::Memory progress = sys::MapMemory(64, true).value();
  bool is_gone = false;
  auto work = [&] {
    std::string_view("wiki/a\npage").copy(progress.bytes().data(), 11);
    return Hang();
  };
  const Clock::time_point begun = Clock::now();
  Result<WorkResult> done = DoInChild(work, {kShortMs, -1, progress.bytes()}, is_gone);
  ASSERT_FALSE(done.ok());
  EXPECT_GE(Clock::now() - begun, milliseconds(kShortMs));
  EXPECT_LT(Clock::now() - begun, kSoon);
  EXPECT_EQ(done.error().err, ETIMEDOUT);
  EXPECT_THAT(done.error().text, HasSubstr("it was at 'wiki/a\\npage'"));
  EXPECT_THAT(done.error().text, HasSubstr("fuser -v"));
  EXPECT_TRUE(is_gone);
}

TEST(ChildWorkTest, WorkThatIsNoLongerWantedEndsAtOnce) {
  sys::Pipe stop = sys::MakePipe().value();
  stop.write_end.Reset();
  bool is_gone = false;
  const Clock::time_point begun = Clock::now();
  Result<WorkResult> done = DoInChild(Hang, {60'000, stop.read_end.get(), {}}, is_gone);
  EXPECT_LT(Clock::now() - begun, kSoon);
  EXPECT_EQ(done.error().code, "stopped");
  EXPECT_TRUE(is_gone);
}

TEST(ChildWorkTest, AChildThatDiesIsAnError) {
  bool is_gone = false;
  auto work = []() -> Result<WorkResult> { sys::ExitNow(3); };
  Result<WorkResult> done = DoInChild(work, {60'000, -1, {}}, is_gone);
  EXPECT_EQ(done.error().err, ECONNRESET);
  EXPECT_TRUE(is_gone);
}

// Whoever reads what this process writes is not to wait for a child that hangs.
TEST(ChildWorkTest, TheChildHasNoStandardStreams) {
  bool is_gone = false;
  auto work = []() -> Result<WorkResult> {
    WorkResult made;
    for (int fd = 0; fd <= 2; ++fd)
      made.bytes += TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", fd))) + " ";
    return made;
  };
  EXPECT_EQ(DoInChild(work, {60'000, -1, {}}, is_gone)->bytes, "/dev/null /dev/null /dev/null ");
}

// CVE-2026-41163: another process of the same uid must not look into it, nor take its descriptors.
TEST(ChildWorkTest, TheChildCannotBeTraced) {
  bool is_gone = false;
  auto work = []() -> Result<WorkResult> {
    WorkResult made;
    made.bytes = TRY(sys::IsDumpable()) ? "dumpable" : "not";
    return made;
  };
  EXPECT_TRUE(sys::IsDumpable().value()) << "control";
  EXPECT_EQ(DoInChild(work, {60'000, -1, {}}, is_gone)->bytes, "not");
}

TEST(SnapshotRecordTest, WhatCannotBeReadAgainIsNotWritten) {
  SnapshotRecord record;
  record.snapshot.warnings = {std::string(kMaxRecordText, 'w')};
  ASSERT_TRUE(EncodeRecord(record).ok());
  EXPECT_TRUE(ParseRecord(EncodeRecord(record).value()).ok());
  record.snapshot.warnings[0] += 'w';
  EXPECT_FALSE(EncodeRecord(record).ok());
  record.snapshot.warnings = std::vector<std::string>(1000);
  EXPECT_FALSE(EncodeRecord(record).ok());
}

class BoundedSnapshotTest : public testing::Test, protected test::TempDirectory {
 protected:
  BoundedSnapshotTest() : TempDirectory("bounded-snapshot") {
    fs::create_directories(At("hung"));
    fs::create_directory(At("store"));
    EXPECT_EQ(::chmod(At("store").c_str(), 0700), 0);
    Put("agent/SOUL.md", "soul");
    Put("agent/wiki/page", "page");
    EXPECT_EQ(::symlink("/etc/passwd", At("agent/wiki/link").c_str()), 0);
    ::usleep(150'000);  // past the time within which a change may leave no trace
  }
  // A link that leads in a circle, in 31 directories, with the longest names, of bytes that are
  // printed as four each.
  void PutDeepLoop() const {
    UniqueFd at = sys::Open(At("agent/wiki"), O_RDONLY | O_DIRECTORY).value();
    const std::string name(255, '\xff');
    for (int level = 1; level < kMaxSnapshotDepth; ++level) {
      ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
      at = UniqueFd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    const std::string loop = std::string(245, '\xff') + "-theloop";
    ASSERT_EQ(::symlinkat(loop.c_str(), at.get(), loop.c_str()), 0);
  }
  Result<StoredSnapshot> Take(const std::string& agent = "agent", const SnapshotTerms& terms = {},
                              Subtree subtree = Subtree::kPrune) const {
    UniqueFd store = sys::Open(At("store"), O_RDONLY | O_DIRECTORY).value();
    UniqueFd from = sys::Open(At(agent), O_RDONLY | O_DIRECTORY).value();
    return taker_.Take({store.get(), At("store")}, from.get(), subtree, terms);
  }
  std::size_t Stored() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(At("store")), {}));
  }
  mutable SnapshotTaker taker_{test::Program("taskcell-launch")};

  // Runs `body` where `agent` hangs.
  int WhereItHangs(const std::function<int()>& body) const {
    return test::InChild([&] {
      if (!test::EnterOwnMounts()) return 90;
      const test::HungFiles hung(At("hung"));
      return hung.mounted() ? body() : 91;
    });
  }
};

TEST_F(BoundedSnapshotTest, ThePathOfWhatIsLeftOutMayBeAsLongAsPathsAre) {
  PutDeepLoop();
  for (Subtree subtree : {Subtree::kPrune, Subtree::kSkip}) {
    Result<StoredSnapshot> taken = Take("agent", {kSnapshotTimeLimit, -1}, subtree);
    ASSERT_TRUE(taken.ok()) << taken.error().text.substr(0, 500);
    const std::vector<std::string>& warnings = taken->content().warnings;
    EXPECT_THAT(warnings,
                Contains(AllOf(HasSubstr("agent entry 'wiki/\\xff\\xff"), HasSubstr("[...]\\xff"),
                               HasSubstr("-theloop' left out"), HasSubstr("circle"))));
    for (const std::string& warning : warnings) EXPECT_LT(warning.size(), 5000U);
    for (const SnapshotEntry& entry : taken->content().entries) EXPECT_LT(entry.note.size(), 5000U);
  }
}

TEST_F(BoundedSnapshotTest, OneThatAnotherProcessTookIsUsedKeptAndRemovedAsOnesOwn) {
  {
    Result<StoredSnapshot> taken = Take();
    ASSERT_TRUE(taken.ok()) << taken.error().text;
    EXPECT_FALSE(taken->is_reused());
    EXPECT_EQ(taken->content().bytes, 8U);
    EXPECT_THAT(taken->content().warnings, testing::ElementsAre(HasSubstr("'wiki/link'")));
    EXPECT_EQ(sys::ReadFile(taken->fd(), "wiki/page", 100).value(), "page");
    EXPECT_EQ(sys::Stat(taken->fd())->st_ino, sys::StatAt(AT_FDCWD, taken->path())->st_ino);
    StoredSnapshot::Tidy(sys::Open(At("store"), O_RDONLY | O_DIRECTORY)->get());
    EXPECT_EQ(Stored(), 1U) << "it is in use";
    EXPECT_TRUE(taken->Release(true).ok());
  }
  Result<StoredSnapshot> again = Take();
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->is_reused());
  EXPECT_TRUE(again->Release(true).ok());
  Put("agent/SOUL.md", "other");
  { EXPECT_FALSE(Take()->is_reused()); }
  EXPECT_EQ(Stored(), 0U) << "nobody asked for it to be kept";
}

TEST_F(BoundedSnapshotTest, OneProcessTakesManyAndIsStartedAgainWhereItWasKilled) {
  const auto children = [] {
    return sys::ReadFile(AT_FDCWD, Text("/proc/self/task/", ::getpid(), "/children"), 4096).value();
  };
  EXPECT_EQ(children(), "") << "none is started before it is asked for";
  EXPECT_TRUE(Take().ok());
  const std::string first = children();
  EXPECT_NE(first, "");
  EXPECT_TRUE(Take().ok());
  EXPECT_EQ(children(), first);
  ASSERT_EQ(::kill(static_cast<pid_t>(ParseUnsigned(Trim(first)).value()), SIGKILL), 0);
  ASSERT_TRUE(test::WaitFor([&] {
    return sys::ReadFile(AT_FDCWD, Text("/proc/", Trim(first), "/stat"), 4096)
               .value()
               .find(") Z ") != std::string::npos;
  }));
  Result<StoredSnapshot> after = Take();
  EXPECT_TRUE(after.ok()) << after.error().text;
  EXPECT_NE(children(), first);
}

TEST_F(BoundedSnapshotTest, ADirectoryThatDoesNotAnswerIsARefusalThatLeavesNothing) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  int status = WhereItHangs([this] {
    const Clock::time_point begun = Clock::now();
    Result<StoredSnapshot> taken = Take("hung", {milliseconds(kShortMs), -1});
    if (taken.ok() || Clock::now() - begun > kSoon) return 1;
    if (taken.error().err != ETIMEDOUT || taken.error().code != "agent_dir_unmountable") return 2;
    return taken.error().text.find("does not answer") != std::string::npos ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Stored(), 0U);
}

TEST_F(BoundedSnapshotTest, OneThatIsNoLongerWantedLeavesNothing) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  int status = WhereItHangs([this] {
    sys::Pipe stop = sys::MakePipe().value();
    stop.write_end.Reset();
    const Clock::time_point begun = Clock::now();
    Result<StoredSnapshot> taken = Take("hung", {kSnapshotTimeLimit, stop.read_end.get()});
    if (taken.ok() || Clock::now() - begun > kSoon) return 1;
    return taken.error().code == "stopped" ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Stored(), 0U);
}

TEST_F(BoundedSnapshotTest, ACopyOfOnesOwnHasTheLimitToo) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  int status = WhereItHangs([this] {
    UniqueFd to = sys::Open(At("store"), O_RDONLY | O_DIRECTORY).value();
    UniqueFd good = sys::Open(At("agent"), O_RDONLY | O_DIRECTORY).value();
    Result<Snapshot> control = SnapshotInTime(good.get(), to.get(), {});
    if (!control.ok() || control->bytes != 8) return 1;
    UniqueFd hung = sys::Open(At("hung"), O_RDONLY | O_DIRECTORY).value();
    const Clock::time_point begun = Clock::now();
    Result<Snapshot> made = SnapshotInTime(hung.get(), to.get(), {milliseconds(kShortMs), -1});
    if (made.ok() || Clock::now() - begun > kSoon) return 2;
    return made.error().err == ETIMEDOUT ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
}

// On file systems where a reader waits for a writer (XFS, and btrfs where blocks are shared) the
// copy ends at its limit; on the others it does not wait. A child that hangs there cannot even be
// killed: what it leaves goes with the next one.
TEST_F(BoundedSnapshotTest, AWriteThatIsHeldHoldsNoSnapshotForLong) {
  const std::string after(2 * SlowWriter::kPage, 'b');
  Put("agent/SOUL.md", std::string(2 * SlowWriter::kPage, 'a'));
  SlowWriter writer(At("agent/SOUL.md"), after);
  TASKCELL_REQUIRE(writer.Stands(), "needs userfaultfd(2) of the kernel's own accesses: root");
  const Clock::time_point begun = Clock::now();
  {
    Result<StoredSnapshot> held = Take("agent", {milliseconds(10 * kShortMs), -1});
    EXPECT_LT(Clock::now() - begun, kSoon);
    if (!held.ok()) {
      EXPECT_EQ(held.error().err, ETIMEDOUT) << held.error().text;
      EXPECT_EQ(held.error().code, "agent_dir_unmountable");
      EXPECT_THAT(held.error().text, HasSubstr("'SOUL.md'"));
    }
  }
  ASSERT_TRUE(writer.Finish());
  EXPECT_TRUE(test::WaitFor([&] {
    Result<StoredSnapshot> free = Take();
    const bool whole =
        free.ok() && sys::ReadFile(free->fd(), "SOUL.md", 1U << 20U).value() == after;
    return whole && Stored() == 1;
  }));
  EXPECT_EQ(Stored(), 0U);
}

TEST_F(BoundedSnapshotTest, AProgramThatDoesNotAnswerIsARefusal) {
  UniqueFd store = sys::Open(At("store"), O_RDONLY | O_DIRECTORY).value();
  UniqueFd from = sys::Open(At("agent"), O_RDONLY | O_DIRECTORY).value();
  Result<StoredSnapshot> taken =
      SnapshotTaker("/bin/true").Take({store.get(), At("store")}, from.get(), Subtree::kPrune, {});
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().text, HasSubstr("/bin/true: "));
  EXPECT_EQ(taken.error().code, "workspace_failed");
  Result<StoredSnapshot> none =
      SnapshotTaker(At("none")).Take({store.get(), At("store")}, from.get(), Subtree::kPrune, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, "workspace_failed");
}

}  // namespace
}  // namespace taskcell::mounts
