// Every code of a finding, and every reason of an entry that is skipped: that it can come about,
// and that the manual lists those that can and no other.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <atomic>
#include <fstream>
#include <ostream>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/mounts/entry.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "probe/mounts/inspector.h"
#include "probe/mounts/worker.h"
#include "tests/support/access_list.h"
#include "tests/support/hung_files.h"
#include "tests/support/inode_flag.h"
#include "tests/support/wait_for.h"
#include "tests/unit/probe/mounts/tree_fixture.h"

namespace taskcell::probe::audit {
namespace {

namespace fs = std::filesystem;

std::string Manual() {
  std::ifstream manual(TASKCELL_MANUAL);
  return {std::istreambuf_iterator<char>(manual), {}};
}

// What the lines of a section that begin with `mark` name.
std::set<std::string> ListedInManual(std::string_view section, std::string_view mark) {
  const std::string page = Manual();
  const std::size_t from = page.find(Text(".Sh ", section, "\n"));
  EXPECT_NE(from, page.npos);
  std::set<std::string> names;
  for (std::string_view line :
       Split(std::string_view(page).substr(from, page.find("\n.Sh ", from) - from), '\n')) {
    if (line.starts_with(mark)) names.insert(std::string(line.substr(mark.size())));
  }
  return names;
}

TEST(CodesTest, EveryCodeHasItsTextsAndTheManualListsThemAndNoOther) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kCodes; ++i) {
    const CodeText& text = TextOf(static_cast<Code>(i));
    EXPECT_FALSE(text.title.empty() || text.gain.empty() || text.fix.empty()) << text.name;
    EXPECT_TRUE(names.insert(std::string(text.name)).second) << text.name;
  }
  EXPECT_EQ(ListedInManual("FINDINGS OF MOUNTS", ".It Li "), names);
}

class CodeTest;

// How a code comes about, in a child with mounts of its own; true where it is among what is found.
// The tree is there, and empty.
struct Maker {
  Code code;
  bool (*comes_about)(const CodeTest& test);
};
void PrintTo(const Maker& maker, std::ostream* out) { *out << TextOf(maker.code).name; }

class CodeTest : public test::TreeTest, public testing::WithParamInterface<Maker> {
 public:
  using TempDirectory::At;
  using TempDirectory::HardLink;
  using TempDirectory::Link;
  using TempDirectory::path;
  using TempDirectory::Put;
  using TreeTest::Audit;
  using TreeTest::Request;
};

Report AuditOf(const AuditRequest& request) { return probe::audit::Audit(request).value(); }

bool Has(const Report& report, Code code) {
  return report.counts[static_cast<std::size_t>(code)] > 0;
}

template <Code kCode, Policy kPolicy = Policy::kStrict>
bool Finds(const CodeTest& test) {
  return Has(test.Audit(kPolicy), kCode);
}

template <Code kCode>
bool FindsAcross(const CodeTest& test) {
  AuditRequest request = test.Request();
  request.walk.crossing = mounts::Crossing::kOtherMounts;
  request.walk.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  return Has(AuditOf(request), kCode);
}

bool Bind(const std::string& from, const std::string& to) {
  return ::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) == 0;
}

bool ChangesAtSomeTime(const CodeTest& test) {
  test.Put("tree/dir/file", "x");
  std::atomic<bool> done = false;
  std::thread changer([&] {
    const std::string file = test.At("tree/dir/file");
    while (!done) {
      (void)::rename(file.c_str(), (file + "2").c_str());
      (void)::rename((file + "2").c_str(), file.c_str());
    }
  });
  bool seen = false;
  const test::Patience patience;
  while (!seen && patience.Lasts()) seen = Finds<Code::kChanged>(test);
  done = true;
  changer.join();
  return seen;
}

// As an owner without capabilities.
bool IsUnreadable(const CodeTest& test) {
  fs::create_directories(test.At("tree/closed"));
  if (::chmod(test.At("tree/closed").c_str(), 0) != 0) return false;
  cap_t none = ::cap_init();
  const bool dropped = ::cap_set_proc(none) == 0;
  ::cap_free(none);
  return dropped && Finds<Code::kUnreadable>(test);
}

bool IsTooDeep(const CodeTest& test) {
  UniqueFd at = sys::Open(test.At("tree"), O_RDONLY | O_DIRECTORY).value();
  for (unsigned level = 0; level <= kMaxDepth; ++level) {
    if (::mkdirat(at.get(), "d", 0755) != 0) return false;
    at = sys::OpenNoFollow(at.get(), "d", O_RDONLY | O_DIRECTORY).value();
  }
  return Finds<Code::kTooDeep>(test);
}

bool IsUnresolvedPastItsBound(const CodeTest& /*test*/) {
  LinkSets links(1, 1);
  FindingList list(Policy::kStrict);
  struct statx info = {};
  info.stx_nlink = 2;
  for (info.stx_ino = 1; info.stx_ino <= 2; ++info.stx_ino)
    links.Meet(info, [] { return std::string("file"); });
  links.AddFindings(list);
  return list.counts()[static_cast<std::size_t>(Code::kHardLinkUnresolved)] == 2;
}

// From its kind alone: nobody answers.
bool IsServed(const CodeTest& test) {
  fs::create_directories(test.At("served"));
  const test::HungFiles served(test.At("served"));
  UniqueFd fd = sys::Open(test.At("served"), O_PATH).value();
  struct statx info = {};
  FindingList list(Policy::kBind);
  LinkSets links(1);
  if (!sys::StatEntry(fd.get(), "", AT_STATX_DONT_SYNC, info).ok()) return false;
  Inspector(fd.get(), {}, list, links).JudgeFileSystem(info);
  return list.counts()[static_cast<std::size_t>(Code::kForeignContent)] == 1;
}

bool Hangs(const CodeTest& test) {
  fs::create_directories(test.At("tree/hung"));
  const test::HungFiles hung(test.At("tree/hung"));
  return hung.mounted() && FindsAcross<Code::kHangs>(test);
}

bool IsImmutable(const CodeTest& test) {
  test.Put("tree/file", "x");
  // Where a file system has no such flag, PlacesTest says so.
  if (!test::SetInodeFlag(test.At("tree/file"), FS_IMMUTABLE_FL, true)) return true;
  const bool found = Finds<Code::kImmutable>(test);
  return test::SetInodeFlag(test.At("tree/file"), FS_IMMUTABLE_FL, false) && found;
}

template <Code kCode, mode_t kMode>
bool IsNode(const CodeTest& test) {
  return ::mknod(test.At("tree/node").c_str(), kMode, makedev(1, 3)) == 0 && Finds<kCode>(test);
}

template <Code kCode, mode_t kMode>
bool IsByMode(const CodeTest& test) {
  test.Put("tree/file", "x");
  return ::chmod(test.At("tree/file").c_str(), kMode) == 0 && Finds<kCode>(test);
}

const Maker kMakers[] = {
    {Code::kSymlinkEscapes,
     [](const CodeTest& test) {
       test.Link("../outside/key", "tree/link");
       return Finds<Code::kSymlinkEscapes>(test);
     }},
    {Code::kMagicLink,
     [](const CodeTest& test) {
       test.Link("/proc/self/root", "tree/link");
       return Finds<Code::kMagicLink>(test);
     }},
    {Code::kSymlinkUnresolved,
     [](const CodeTest& test) {
       test.Link("link", "tree/link");
       return Finds<Code::kSymlinkUnresolved>(test);
     }},
    {Code::kSymlinkDangling,
     [](const CodeTest& test) {
       test.Link("nowhere", "tree/link");
       return Finds<Code::kSymlinkDangling>(test);
     }},
    {Code::kSymlinkInside,
     [](const CodeTest& test) {
       test.Link(".", "tree/link");
       return Finds<Code::kSymlinkInside>(test);
     }},
    {Code::kHardLinkLeaves,
     [](const CodeTest& test) {
       test.HardLink("outside/key", "tree/key");
       return Finds<Code::kHardLinkLeaves>(test);
     }},
    {Code::kHardLinkUnresolved, IsUnresolvedPastItsBound},
    {Code::kHardLinkClosed,
     [](const CodeTest& test) {
       test.Put("tree/one", "x");
       test.HardLink("tree/one", "tree/two");
       return Finds<Code::kHardLinkClosed>(test);
     }},
    {Code::kMount,
     [](const CodeTest& test) {
       fs::create_directories(test.At("tree/dir"));
       return Bind(test.At("outside"), test.At("tree/dir")) && Finds<Code::kMount>(test);
     }},
    {Code::kMountLoop,
     [](const CodeTest& test) {
       fs::create_directories(test.At("tree/dir"));
       return Bind(test.At("tree"), test.At("tree/dir")) && FindsAcross<Code::kMountLoop>(test);
     }},
    {Code::kSocket, IsNode<Code::kSocket, S_IFSOCK | 0600>},
    {Code::kFifo, IsNode<Code::kFifo, S_IFIFO | 0600>},
    {Code::kDevice, IsNode<Code::kDevice, S_IFCHR | 0600>},
    {Code::kSetId, IsByMode<Code::kSetId, 04755>},
    {Code::kFileCapability,
     [](const CodeTest& test) {
       test.Put("tree/file", "x");
       return ::chmod(test.At("tree/file").c_str(), 0755) == 0 &&
              test::Run({"setcap", "cap_net_raw+ep", test.At("tree/file")}).status == 0 &&
              Finds<Code::kFileCapability>(test);
     }},
    {Code::kWritable, IsByMode<Code::kWritable, 0666>},
    {Code::kAccessList,
     [](const CodeTest& test) {
       test.Put("tree/file", "x");
       // Where a file system takes no lists, PlacesTest says so.
       return !test::LetUser1500Write(test.At("tree/file")) || Finds<Code::kAccessList>(test);
     }},
    {Code::kForeignOwner,
     [](const CodeTest& test) {
       test.Put("tree/file", "x");
       return ::chown(test.At("tree/file").c_str(), 12345, 0) == 0 &&
              Finds<Code::kForeignOwner>(test);
     }},
    {Code::kOverlayAttribute,
     [](const CodeTest& test) {
       // Where a file system takes none, PlacesTest says so.
       return ::setxattr(test.At("tree").c_str(), "user.overlay.opaque", "y", 1, 0) != 0 ||
              Finds<Code::kOverlayAttribute>(test);
     }},
    {Code::kImmutable, IsImmutable},
    {Code::kForeignContent, IsServed},
    {Code::kAncestorOwner,
     [](const CodeTest& test) {
       return ::chown(test.path().c_str(), 12345, 0) == 0 &&
              Finds<Code::kAncestorOwner, Policy::kBind>(test);
     }},
    {Code::kAncestorWritable,
     [](const CodeTest& test) {
       return ::chmod(test.path().c_str(), 0777) == 0 &&
              Finds<Code::kAncestorWritable, Policy::kBind>(test);
     }},
    {Code::kAncestorLink,
     [](const CodeTest& test) {
       test.Link("tree", "way");
       AuditRequest request = test.Request(Policy::kBind);
       request.directory = test.At("way");
       return ::lchown(test.At("way").c_str(), 12345, 0) == 0 &&
              Has(AuditOf(request), Code::kAncestorLink);
     }},
    {Code::kEntrySkipped,
     [](const CodeTest& test) {
       fs::create_directories(test.At("tree/SOUL.md"));
       return Finds<Code::kEntrySkipped, Policy::kAgent>(test);
     }},
    {Code::kOverLimit,
     [](const CodeTest& test) {
       test.Put("tree/SOUL.md", std::string(mounts::kMaxPersonaBytes + 1, 'x'));
       return Finds<Code::kOverLimit, Policy::kAgent>(test);
     }},
    {Code::kNotText,
     [](const CodeTest& test) {
       test.Put("tree/SOUL.md", "caf\xe9");
       return Finds<Code::kNotText, Policy::kAgent>(test);
     }},
    {Code::kChanged, ChangesAtSomeTime},
    {Code::kUnreadable, IsUnreadable},
    {Code::kTooDeep, IsTooDeep},
    {Code::kTooMany,
     [](const CodeTest& test) {
       test.Put("tree/file", "x");
       AuditRequest request = test.Request();
       request.walk.max_entries = 0;
       return Has(AuditOf(request), Code::kTooMany);
     }},
    {Code::kTimeout,
     [](const CodeTest& test) {
       AuditRequest request = test.Request();
       request.walk.deadline = std::chrono::steady_clock::now();
       return Has(AuditOf(request), Code::kTimeout);
     }},
    {Code::kHangs, Hangs}};

TEST(CodesTest, EveryCodeHasAWayToComeAbout) {
  std::set<std::string_view> made;
  for (const Maker& maker : kMakers) made.insert(TextOf(maker.code).name);
  EXPECT_EQ(made.size(), kCodes);
}

TEST_P(CodeTest, ComesAbout) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  EXPECT_EQ(test::InChild([this] {
              if (!test::EnterOwnMounts()) return 90;
              return GetParam().comes_about(*this) ? 0 : 1;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Each, CodeTest, testing::ValuesIn(kMakers),
                         [](const auto& row) { return std::string(TextOf(row.param.code).name); });

}  // namespace
}  // namespace taskcell::probe::audit
