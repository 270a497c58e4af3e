// Known ways to lead a resolver astray, each with the answer that is right here: what names an
// entry is followed by nobody, what lies in SKILLS and wiki may link to what a cell sees anyway.
//
// The layout is that of the kernel's selftests (tools/testing/selftests/openat2); what else a path
// may be made to show stands in tests/README.md, with the tests of it.
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "launcher/mounts/ancestors.h"
#include "launcher/mounts/component.h"
#include "launcher/sys/copy.h"
#include "tests/support/fixture.h"
#include "tests/unit/launcher/mounts/snapshot_fixture.h"
#include "tests/unit/launcher/openat2_layout.h"

namespace taskcell::mounts {
namespace {

class PathCasesTest : public SnapshotTest {
 protected:
  // What stands in the snapshot below wiki: links with an arrow.
  std::set<std::string> Copied() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(target() + "/wiki")) {
      if (entry.is_directory() && !entry.is_symlink()) continue;
      std::string name = entry.path().string().substr(target().size() + sizeof "/wiki");
      names.insert(name + (entry.is_symlink() ? "->" : ""));
    }
    return names;
  }
  void EmptyTarget() const {
    ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
    UniqueFd to = sys::Open(target(), O_RDONLY | O_DIRECTORY).value();
    for (const AllowedEntry& entry : kAgentEntries)
      ASSERT_TRUE(RemoveTree(to.get(), std::string(entry.name)).ok());
  }
};

TEST_F(PathCasesTest, OfTheKernelsLayoutOnlyLinksThatStayInsideAreKept) {
  test::MakeOpenat2Layout(agent() + "/wiki");
  Result<Snapshot> snapshot = Run();
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().text;
  EXPECT_EQ(Copied(), (std::set<std::string>{"etc/passwd", "cheeky/passwd->", "relsym->",
                                             "reletc->", "mnt/self->"}));
  EXPECT_EQ(snapshot->warnings.size(), 13U);
}

TEST_F(PathCasesTest, OneComponentIsOneComponent) {
  test::MakeOpenat2Layout(At("tree"));
  UniqueFd tree = sys::Open(At("tree"), O_RDONLY | O_DIRECTORY).value();
  for (const char* name : {"", ".", "..", "/", "etc/passwd", "etc/", "/etc", "../tree"})
    EXPECT_FALSE(OpenComponent(tree.get(), name, O_RDONLY).ok()) << name;
  for (const char* name : {"relsym", "reletc", "abssym", "procexe", "procroot", "creatlink"})
    EXPECT_EQ(OpenComponent(tree.get(), name, O_RDONLY).error().err, ELOOP) << name;
  EXPECT_TRUE(OpenComponent(tree.get(), "etc", O_RDONLY | O_DIRECTORY).ok());
}

TEST_F(PathCasesTest, AMountInTheTreeIsNotEnteredFromAnySide) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  test::MakeOpenat2Layout(agent() + "/wiki");
  int status = test::InChild([&] {
    const std::string mnt = agent() + "/wiki/mnt";
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", mnt.c_str(), "tmpfs", 0, "") != 0)
      return 91;
    std::ofstream(mnt + "/page") << "of another file system";
    UniqueFd wiki = sys::Open(agent() + "/wiki", O_RDONLY | O_DIRECTORY).value();
    Result<UniqueFd> entered = OpenComponent(wiki.get(), "mnt", O_RDONLY | O_DIRECTORY);
    if (entered.ok() || entered.error().err != EXDEV) return 1;
    Result<Snapshot> snapshot = Run();
    return snapshot.ok() && !Copied().contains("mnt/page") ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(PathCasesTest, ALoopOfLinksIsNoWay) {
  for (const auto& [name, target] : std::map<std::string, std::string>{
           {"loop", "loop"}, {"one", "two"}, {"two", "three"}, {"three", "one"}}) {
    fs::create_directories(agent() + "/wiki");
    ASSERT_EQ(::symlink(target.c_str(), (agent() + "/wiki/" + name).c_str()), 0);
    Result<PinnedPath> pinned = PinPath(agent() + "/wiki/" + name, {});
    EXPECT_FALSE(pinned.ok());
  }
  EXPECT_EQ(PinPath(agent() + "/wiki/one", {}).error().err, ELOOP);
  EXPECT_EQ(Run()->warnings.size(), 4U);
  EXPECT_TRUE(Copied().empty());
}

// The same mount, but another device number: it must not be taken for a mount. Where the tests'
// directory is not on btrfs (it is in the lab) any directory stands for it.
TEST_F(PathCasesTest, ASubvolumeIsADirectory) {
  struct statfs info = {};
  ASSERT_EQ(::statfs(agent().c_str(), &info), 0);
  if (info.f_type == BTRFS_SUPER_MAGIC) {
    UniqueFd parent = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
    struct btrfs_ioctl_vol_args arguments = {};
    std::strcpy(arguments.name, "wiki");
    ASSERT_EQ(::ioctl(parent.get(), BTRFS_IOC_SUBVOL_CREATE, &arguments), 0);
  }
  Put("agent/wiki/page", "page");
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Entry(snapshot, "wiki").verdict, Verdict::kSafe);
  EXPECT_EQ(Copied(), std::set<std::string>{"page"});
}

// Where blocks are shared (btrfs, which is in the lab) and where they cannot be: the same copy.
TEST_F(PathCasesTest, FilesShareTheirBlocksWhereTheFileSystemCan) {
  const std::string content(1U << 16U, 'x');
  Put("agent/wiki/page", content);
  Put("clone", "");
  struct statfs info = {};
  ASSERT_EQ(::statfs(agent().c_str(), &info), 0);
  const UniqueFd from = sys::Open(agent() + "/wiki/page", O_RDONLY).value();
  const UniqueFd to = sys::Open(At("clone"), O_WRONLY).value();
  const bool cloned = sys::CloneContent(to.get(), from.get()).value();
  const bool never = info.f_type == TMPFS_MAGIC || info.f_type == EXT4_SUPER_MAGIC;
  EXPECT_EQ(cloned, info.f_type == BTRFS_SUPER_MAGIC || (cloned && !never));
  EXPECT_EQ(Get(At("clone")), cloned ? content : "");
  EXPECT_EQ(Run()->bytes, content.size());
  EXPECT_EQ(Get(target() + "/wiki/page"), content);
}

TEST_F(PathCasesTest, ASparseFileOfATebibyteIsRefusedBeforeAByteIsRead) {
  constexpr off_t kTebibyte = off_t{1} << 40U;
  Put("agent/wiki/large", "");
  Put("agent/SKILLS/small", "small");
  ASSERT_EQ(::truncate((agent() + "/wiki/large").c_str(), kTebibyte), 0);
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Entry(snapshot, "wiki").verdict, Verdict::kSkip);
  EXPECT_EQ(snapshot.bytes, 5U);
  EmptyTarget();
  Put("agent/SOUL.md", "");
  ASSERT_EQ(::truncate((agent() + "/SOUL.md").c_str(), kTebibyte), 0);
  EXPECT_EQ(Run().error().code, "agent_dir_unmountable");
}

// A file system that folds case finds SOUL.md by this name; the directory does not list it so.
TEST_F(PathCasesTest, OnlyTheVeryBytesOfANameAreListed) {
  for (const char* name : {"soul.md", "SOUL.MD", "SOUL.md ", "SOUL.md\n", "Wiki"})
    Put(std::string("agent/") + name, "x");
  Put("agent/IDENTITY.md", "x");
  UniqueFd dir = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
  EXPECT_EQ(ListedEntries(dir.get()).value(), std::set<std::string_view>{"IDENTITY.md"});
  EXPECT_EQ(Entry(Run().value(), "SOUL.md").verdict, Verdict::kAbsent);
}

// What is right depends on whether the file system of /tmp folds case.
TEST_F(PathCasesTest, AnotherSpellingIsLeftOutWhereItIsFoundAndAbsentWhereItIsNot) {
  Put("agent/soul.md", "x");
  Put("agent/WIKI/page", "x");
  Put("agent/SKILLS/page", "x");
  const bool folds = fs::exists(agent() + "/SOUL.md");
  RecordProperty("folds", folds);
  Snapshot snapshot = Run().value();
  for (const char* name : {"SOUL.md", "wiki"}) {
    const SnapshotEntry entry = Entry(snapshot, name);
    EXPECT_EQ(entry.verdict, folds ? Verdict::kSkip : Verdict::kAbsent) << name;
    EXPECT_EQ(entry.reason, folds ? Reason::kWrongKind : Reason::kNone) << name;
    EXPECT_FALSE(fs::exists(target() + "/" + name)) << name;
  }
  EXPECT_EQ(Entry(snapshot, "SKILLS").verdict, Verdict::kSafe);
}

TEST_F(PathCasesTest, WhatIsFoundByANameThatIsNotListedIsLeftOut) {
  Put("agent/SOUL.md", "x");
  UniqueFd dir = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
  EXPECT_EQ(JudgeAllowed(dir.get(), kAgentEntries[0], {"SOUL.md"})->verdict, Verdict::kSafe);
  Finding finding = JudgeAllowed(dir.get(), kAgentEntries[0], {"wiki"}).value();
  EXPECT_EQ(finding.verdict, Verdict::kSkip);
  EXPECT_EQ(finding.reason, Reason::kWrongKind);
  EXPECT_FALSE(finding.note.empty());
  EXPECT_EQ(JudgeAllowed(dir.get(), kAgentEntries[1], {"SOUL.md"})->verdict, Verdict::kAbsent);
}

// What is opened is opened below its directory, never again by way of /proc/self/fd.
TEST_F(PathCasesTest, WithoutProcTheSameIsCopied) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  Put("agent/SOUL.md", "soul");
  Put("agent/wiki/page", "page");
  ASSERT_EQ(::symlink("page", (agent() + "/wiki/link").c_str()), 0);
  int status = test::InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/proc", "tmpfs", 0, "") != 0)
      return 91;
    Result<Snapshot> snapshot = Run();
    if (!snapshot.ok() || !snapshot->warnings.empty()) return 1;
    if (Copied() != std::set<std::string>{"page", "link->"}) return 2;
    // A relative path needs it, and is refused without.
    return PinPath("agent", {}).ok() ? 3 : 0;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::mounts
