// Further ways to have a cell see what is not the agent's own, each with the answer that is right
// here: special files by every detour, layers of an overlay, sets of links that are too large to be
// counted.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include <set>

#include "launcher/base/text.h"
#include "launcher/mounts/link_scan.h"
#include "tests/support/fixture.h"
#include "tests/unit/launcher/mounts/snapshot_fixture.h"

namespace taskcell::mounts {
namespace {

class IncidentRowsTest : public SnapshotTest {
 protected:
  // The names in the snapshot's wiki.
  std::set<std::string> Pages() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(target() + "/wiki"))
      names.insert(entry.path().filename());
    return names;
  }
  // In a child, with `agent` on a file system of its own.
  static bool OwnMounts() {
    return ::unshare(CLONE_NEWNS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }
};

TEST_F(IncidentRowsTest, ADeviceIsLeftOutAtTheTopAndInside) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to make devices");
  fs::create_directories(agent() + "/wiki");
  Put("agent/wiki/page", "page");
  for (const char* name : {"/SOUL.md", "/wiki/zero"})
    ASSERT_EQ(::mknod((agent() + name).c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Entry(snapshot, "SOUL.md").reason, Reason::kSpecial);
  EXPECT_EQ(Entry(snapshot, "SOUL.md").note, "it is a character device");
  EXPECT_EQ(Pages(), std::set<std::string>{"page"});
}

TEST_F(IncidentRowsTest, AFileOfProcAndAMemoryFileAreLinksThatAreLeftOut) {
  UniqueFd memory(::memfd_create("canary", MFD_CLOEXEC));
  ASSERT_TRUE(sys::WriteAll(memory.get(), "the canary").ok());
  const std::string by_proc = Text("/proc/self/fd/", memory.get());
  Link("/proc/version", "agent/SOUL.md");
  Link(by_proc, "agent/IDENTITY.md");
  Link("/proc/version", "agent/wiki/version");
  Link(by_proc, "agent/wiki/memory");
  Snapshot snapshot = Run().value();
  EXPECT_EQ(Entry(snapshot, "SOUL.md").reason, Reason::kSymlink);
  EXPECT_EQ(Entry(snapshot, "IDENTITY.md").reason, Reason::kSymlink);
  EXPECT_TRUE(Pages().empty());
  EXPECT_EQ(snapshot.warnings.size(), 4U);
}

// Files of either layer, one that was copied up among them, and directories of both.
TEST_F(IncidentRowsTest, WhatIsPlainOnAnOverlayIsCopiedWhole) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  constexpr int kCannot = 77;
  for (const char* name : {"lower/wiki/merged/old", "lower/wiki/changed", "lower/SOUL.md"})
    Put(name, "lower");
  const int status = test::InChild([this] {
    if (!OwnMounts()) return 91;
    fs::create_directory(At("layers"));
    // Two file systems: then the device numbers of files differ from their directory's.
    if (::mount("tmpfs", At("layers").c_str(), "tmpfs", 0, "") != 0) return 92;
    for (const char* name : {"layers/upper", "layers/work"}) fs::create_directory(At(name));
    const std::string options = Text("lowerdir=", At("lower"), ",upperdir=", At("layers/upper"),
                                     ",workdir=", At("layers/work"));
    if (::mount("overlay", agent().c_str(), "overlay", 0, options.c_str()) != 0) return kCannot;
    Put("agent/wiki/merged/new", "upper");
    Put("agent/wiki/changed", "upper");
    Snapshot snapshot = Run().value();
    if (!snapshot.warnings.empty()) return 1;
    const bool right =
        Get(target() + "/SOUL.md") == "lower" && Get(target() + "/wiki/merged/old") == "lower" &&
        Get(target() + "/wiki/merged/new") == "upper" && Get(target() + "/wiki/changed") == "upper";
    return right ? 0 : 2;
  });
  TASKCELL_REQUIRE(status != kCannot, "needs overlayfs");
  EXPECT_EQ(status, 0);
}

TEST_F(IncidentRowsTest, PastTheBoundOfAWalkNoSetOfLinksIsClosed) {
  Put("agent/wiki/one", "x");
  HardLink("agent/wiki/one", "agent/wiki/two");
  UniqueFd top = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
  const struct stat info = sys::StatAt(top.get(), "wiki/one").value();
  constexpr int kDepth = 4;
  EXPECT_TRUE(LinkScan::Make(top.get(), 2, kDepth)->MayBeClosed(info.st_dev, info.st_ino));
  EXPECT_FALSE(LinkScan::Make(top.get(), 1, kDepth)->MayBeClosed(info.st_dev, info.st_ino));
  EXPECT_FALSE(LinkScan::Make(top.get(), 2, 0)->MayBeClosed(info.st_dev, info.st_ino));
}

}  // namespace
}  // namespace taskcell::mounts
