#include "probe/mounts/audit.h"

#include <gmock/gmock.h>
#include <sys/capability.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/mounts/link_sets.h"
#include "probe/mounts/print.h"
#include "tests/support/access_list.h"
#include "tests/unit/probe/mounts/tree_fixture.h"

namespace taskcell::probe::audit {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

using AuditTest = test::TreeTest;

TEST_F(AuditTest, ATreeOfPlainFilesIsSafe) {
  for (const char* name : {"tree/a", "tree/b/c", "tree/b/d/e", "tree/-rf"}) Put(name, "x");
  Report report = Audit();
  EXPECT_EQ(report.standing, Standing::kSafe);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.looked_at, 6U);
}

TEST_F(AuditTest, EverySymbolicLinkIsNamedByWhereItLeads) {
  Put("tree/dir/real", "x");
  Link("dir/real", "tree/inside");
  Link("../dir/../inside", "tree/dir/chain");
  Link("../outside/key", "tree/up");
  Link(At("tree/dir/real"), "tree/absolute");
  Link("nowhere", "tree/dangling");
  Link("/proc/self/root/etc", "tree/magic");
  Link("loop", "tree/loop");
  EXPECT_THAT(FoundIn(Audit()),
              UnorderedElementsAre(Pair("inside", ElementsAre("symlink_inside")),
                                   Pair("dir/chain", ElementsAre("symlink_inside")),
                                   Pair("up", ElementsAre("symlink_escapes")),
                                   Pair("absolute", ElementsAre("symlink_escapes")),
                                   Pair("dangling", ElementsAre("symlink_dangling")),
                                   Pair("magic", ElementsAre("magic_link")),
                                   Pair("loop", ElementsAre("symlink_unresolved"))));
}

TEST_F(AuditTest, ALinkIntoADirectoryThatMayNotBeEnteredIsNotResolved) {
  Put("tree/closed/file", "x");
  Link("closed/file", "tree/link");
  ASSERT_EQ(::chmod(At("tree/closed").c_str(), 0), 0);
  int status = test::InChild([this] {
    cap_t none = ::cap_init();  // an owner without capabilities, also where the test is root
    if (::cap_set_proc(none) != 0) return 2;
    ::cap_free(none);
    return FoundIn(Audit())["link"] == std::set<std::string>{"symlink_unresolved"} ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(AuditTest, HardLinksThatLeaveTheTreeAreToldFromThoseThatDoNot) {
  HardLink("outside/key", "tree/key");
  HardLink("outside/key", "tree/deep/down/key");
  Put("tree/own", "x");
  HardLink("tree/own", "tree/other/own");
  Report report = Audit();
  EXPECT_THAT(FoundIn(report),
              UnorderedElementsAre(Pair("key", ElementsAre("hard_link_leaves")),
                                   Pair("deep/down/key", ElementsAre("hard_link_leaves")),
                                   Pair("own", ElementsAre("hard_link_closed")),
                                   Pair("other/own", ElementsAre("hard_link_closed"))));
  EXPECT_EQ(report.findings.front().severity, Severity::kError) << "the worst comes first";
}

TEST_F(AuditTest, AFileWhoseOtherNameIsGoneIsPlainAgain) {
  HardLink("outside/key", "tree/key");
  fs::remove(At("outside/key"));
  EXPECT_EQ(Audit().standing, Standing::kSafe) << "HL-7: cannot be told, as documented";
}

TEST_F(AuditTest, MoreLinkedFilesThanAreKeptAreNamedByASecondWalk) {
  constexpr int kFiles = 3500;
  fs::create_directories(At("tree/links"));
  for (int i = 0; i < kFiles; ++i) {
    Put(Text("outside/", i), "");
    HardLink(Text("outside/", i), Text("tree/links/", i));
  }
  Report report = Audit();
  EXPECT_EQ(report.counts[static_cast<std::size_t>(Code::kHardLinkLeaves)], 3500U);
  EXPECT_EQ(report.findings.size() + report.left_out, 3500U);
  EXPECT_EQ(report.looked_at, 3501U) << "counted once";
}

TEST(LinkSetsTest, PastTheBoundNoSetIsResolvedAndAllCountAsLeaving) {
  for (const std::size_t max : {std::size_t{10}, kMaxLinkedInodes}) {
    for (uint64_t inodes : {max, max + 1}) {
      LinkSets links(1, max);
      FindingList list(Policy::kStrict);
      struct statx info = {};
      info.stx_nlink = 2;
      for (info.stx_ino = 1; info.stx_ino <= inodes; ++info.stx_ino)
        links.Meet(info, [&info] { return std::to_string(info.stx_ino); });
      const bool over = inodes > max;
      EXPECT_EQ(links.is_over(), over) << inodes;
      info.stx_ino = 1;
      links.Meet(info, [] { return std::string("again"); });
      for (info.stx_ino = 1; info.stx_ino <= inodes; ++info.stx_ino)
        links.AddFinding(info, "", list);
      const auto counts = list.counts();
      EXPECT_EQ(counts[static_cast<std::size_t>(Code::kHardLinkUnresolved)], over ? max + 1 : 0);
      EXPECT_EQ(counts[static_cast<std::size_t>(Code::kHardLinkLeaves)], over ? 0 : max - 1);
      EXPECT_EQ(counts[static_cast<std::size_t>(Code::kHardLinkClosed)], over ? 0 : 1U);
    }
  }
}

// A file that all names were met of takes no room any more.
TEST(LinkSetsTest, TheBoundIsOnInodesThatAreOpenAtATime) {
  constexpr std::size_t kMax = 10;
  LinkSets links(1, kMax);
  struct statx info = {};
  info.stx_nlink = 2;
  for (info.stx_ino = 1; info.stx_ino <= 10 * kMax; ++info.stx_ino) {
    for (int name = 0; name < 2; ++name) links.Meet(info, [] { return std::string(); });
  }
  EXPECT_FALSE(links.is_over());
}

TEST_F(AuditTest, SpecialFilesAreNamedAndNeverOpened) {
  ASSERT_EQ(::mkfifo(At("tree/pipe").c_str(), 0600), 0);
  int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  At("tree/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  // NOLINTNEXTLINE: the socket API takes a cast address
  ASSERT_EQ(::bind(socket, reinterpret_cast<struct sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
  std::atomic<bool> done = false;
  std::atomic<int> readers = 0;
  std::thread writer([&] {  // succeeds only while somebody reads
    while (!done) {
      int fd = ::open(At("tree/pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      if (fd < 0) continue;
      ++readers;
      ::close(fd);
    }
  });
  for (int round = 0; round < 100; ++round) {
    EXPECT_THAT(FoundIn(Audit()), UnorderedElementsAre(Pair("pipe", ElementsAre("fifo")),
                                                       Pair("socket", ElementsAre("socket"))));
  }
  done = true;
  writer.join();
  EXPECT_EQ(readers, 0);
}

TEST_F(AuditTest, ModesAndOwnersThatLetOthersInAreNamed) {
  for (const char* name : {"tree/world", "tree/suid", "tree/sgid", "tree/plain"}) Put(name, "x");
  ASSERT_EQ(::chmod(At("tree/world").c_str(), 0646), 0);
  ASSERT_EQ(::chmod(At("tree/suid").c_str(), 04755), 0);
  ASSERT_EQ(::chmod(At("tree/sgid").c_str(), 02755), 0);
  fs::create_directories(At("tree/drop"));
  ASSERT_EQ(::chmod(At("tree/drop").c_str(), 01777), 0);
  EXPECT_THAT(FoundIn(Audit()),
              UnorderedElementsAre(Pair("world", ElementsAre("writable_by_others")),
                                   Pair("drop", ElementsAre("writable_by_others")),
                                   Pair("suid", ElementsAre("set_id")),
                                   Pair("sgid", ElementsAre("set_id"))));
  AuditRequest request = Request();
  request.owner = ::geteuid() + 12345;
  Found found = FoundIn(probe::audit::Audit(request).value());
  EXPECT_EQ(found["plain"].contains("foreign_owner"), ::geteuid() != 0) << "root is trusted";
}

TEST_F(AuditTest, WhatBelongsToAnotherUserIsNamed) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to give files away");
  Put("tree/foreign", "x");
  Put("tree/plain", "x");
  Link("plain", "tree/link");
  ASSERT_EQ(::chown(At("tree/foreign").c_str(), 12345, 0), 0);
  ASSERT_EQ(::lchown(At("tree/link").c_str(), 12345, 0), 0);
  EXPECT_THAT(
      FoundIn(Audit()),
      UnorderedElementsAre(Pair("foreign", ElementsAre("foreign_owner")),
                           Pair("link", UnorderedElementsAre("foreign_owner", "symlink_inside"))));
}

TEST_F(AuditTest, ADeviceIsNamed) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to make a device");
  ASSERT_EQ(::mknod(At("tree/null").c_str(), S_IFCHR | 0600, makedev(1, 3)), 0);
  Report report = Audit();
  EXPECT_THAT(FoundIn(report), ElementsAre(Pair("null", ElementsAre("device"))));
  EXPECT_EQ(report.findings[0].detail, "a character device 1:3");
}

TEST_F(AuditTest, ALinkAndAForeignDirectoryOnTheWayAreNamed) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to give directories away");
  Link("tree", "way");
  ASSERT_EQ(::lchown(At("way").c_str(), 12345, 0), 0);
  AuditRequest request = Request(Policy::kBind);
  request.directory = At("way");
  EXPECT_THAT(FoundIn(probe::audit::Audit(request).value()),
              ElementsAre(Pair(At("way"), ElementsAre("ancestor_link"))));
  ASSERT_EQ(::chown(path().c_str(), 12345, 0), 0);
  EXPECT_THAT(FoundIn(Audit(Policy::kBind)),
              ElementsAre(Pair(path(), ElementsAre("ancestor_owner"))));
}

TEST_F(AuditTest, RootsAuditTrustsWhoeverOwnsTheDirectoryAndSaysSo) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to give files away");
  constexpr uid_t kOwner = 12345;
  Put("tree/SOUL.md", "x");
  EXPECT_EQ(Audit().owner, 0U);
  for (const std::string& name : {path(), At("tree"), At("tree/SOUL.md")})
    ASSERT_EQ(::chown(name.c_str(), kOwner, 0), 0);
  for (Policy policy : {Policy::kStrict, Policy::kAgent}) {
    const Report report = Audit(policy);
    EXPECT_EQ(report.standing, Standing::kSafe);
    EXPECT_EQ(report.owner, kOwner);
    EXPECT_THAT(TableOf(report, {}), HasSubstr(", owner uid 12345)"));
    EXPECT_THAT(JsonOf({report}), HasSubstr("\"owner\":12345"));
    AuditRequest request = Request(policy);
    request.owner = 0;
    EXPECT_EQ(probe::audit::Audit(request)->standing, Standing::kUnsafe);
  }
}

TEST_F(AuditTest, AnAccessListIsNamedWhereverAnotherUserMayWriteByIt) {
  Put("tree/SOUL.md", "x");
  TASKCELL_REQUIRE(test::LetUser1500Write(At("tree/SOUL.md")),
                   "needs access control lists on the file system of /tmp");
  Report report = Audit(Policy::kAgent);
  EXPECT_EQ(report.standing, Standing::kUnsafe);
  EXPECT_THAT(FoundIn(report.entries[0].notes),
              ElementsAre(Pair("SOUL.md", ElementsAre("access_list"))));
  fs::remove(At("tree/SOUL.md"));
  ASSERT_TRUE(test::LetUser1500Write(At("tree")));
  for (Policy policy : {Policy::kAgent, Policy::kStrict, Policy::kBind}) {
    report = Audit(policy);
    EXPECT_EQ(report.standing, Standing::kUnsafe);
    EXPECT_THAT(FoundIn(report), ElementsAre(Pair(".", ElementsAre("access_list"))));
  }
  ASSERT_EQ(::chmod(At("tree").c_str(), 0755), 0);
  ASSERT_TRUE(test::LetUser1500Write(path()));
  for (Policy policy : {Policy::kAgent, Policy::kStrict, Policy::kBind}) {
    report = Audit(policy);
    EXPECT_EQ(report.standing, Standing::kUnsafe);
    EXPECT_THAT(FoundIn(report), ElementsAre(Pair(path(), ElementsAre("ancestor_writable"))));
  }
}

TEST_F(AuditTest, NamesOfAnyBytesAreKeptAsTheyAre) {
  const std::string names[] = {"a\nSOUL.md safe", "\xff\xfe-latin",      "\x1b]0;title\x07",
                               " lead ",          std::string(255, 'x'), "{\"entry\":1}"};
  for (const std::string& name : names) Link("/etc/passwd", "tree/" + name);
  Found found = FoundIn(Audit());
  EXPECT_EQ(found.size(), std::size(names));
  for (const std::string& name : names) EXPECT_TRUE(found.contains(name)) << Printable(name);
}

// In a layer of an overlay, a file that has a size alone may stand for another one.
TEST_F(AuditTest, AFileWithASizeAloneIsAskedWhatItStandsFor) {
  for (const char* name : {"tree/stands-for", "tree/sparse"}) {
    Put(name, "");
    ASSERT_EQ(::truncate(At(name).c_str(), 4096), 0);
  }
  // An overlay itself takes no attribute of the first name.
  bool marked = false;
  for (const char* attribute : {"trusted.overlay.metacopy", "user.overlay.metacopy"})
    marked = marked || ::setxattr(At("tree/stands-for").c_str(), attribute, "", 0, 0) == 0;
  TASKCELL_REQUIRE(marked, "needs root, or user attributes on the file system of /tmp");
  EXPECT_EQ(FoundIn(Audit()), (Found{{"stands-for", {"overlay_attribute"}}}));
}

TEST_F(AuditTest, WhatCannotBeReadIsNotJudged) {
  Put("tree/closed/file", "x");
  Put("tree/listed/file", "x");
  ASSERT_EQ(::chmod(At("tree/closed").c_str(), 0), 0);
  ASSERT_EQ(::chmod(At("tree/listed").c_str(), 0444), 0);
  int status = test::InChild([this] {
    cap_t none = ::cap_init();  // an owner without capabilities, also where the test is root
    if (::cap_set_proc(none) != 0) return 2;
    ::cap_free(none);
    Report report = Audit();
    Found wanted = {{"closed", {"unreadable"}}, {"listed/file", {"unreadable"}}};
    return report.standing == Standing::kUnknown && FoundIn(report) == wanted ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::chmod(At("tree/closed").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(At("tree/listed").c_str(), 0700), 0);
}

TEST_F(AuditTest, OnlyFilesThatNobodyElseDecidesAboutAreListedAsSafe) {
  for (const char* name : {"tree/good", "tree/dir/good", "tree/open/below", "tree/suid"})
    Put(name, "x");
  Link("good", "tree/link");
  ASSERT_EQ(::chmod(At("tree/suid").c_str(), 04755), 0);
  ASSERT_EQ(::chmod(At("tree/open").c_str(), 0777), 0);
  std::mutex mutex;
  std::set<std::string> safe;
  AuditRequest request = Request();
  request.safe = [&](std::string_view path) {
    std::scoped_lock lock(mutex);
    safe.insert(std::string(path));
  };
  ASSERT_TRUE(probe::audit::Audit(request).ok());
  EXPECT_EQ(safe, (std::set<std::string>{"good", "dir/good"}));
}

TEST_F(AuditTest, NothingIsListedAsSafeWhereSomebodyElseDecidesAboutTheWholeDirectory) {
  Put("tree/file", "x");
  AuditRequest request = Request();
  std::mutex mutex;
  int safe = 0;
  request.safe = [&](std::string_view /*path*/) {
    std::scoped_lock lock(mutex);
    ++safe;
  };
  auto listed = [&] {
    safe = 0;
    EXPECT_TRUE(probe::audit::Audit(request).ok());
    return safe;
  };
  EXPECT_EQ(listed(), 1);
  for (const std::string& open : {At("tree"), path()}) {
    ASSERT_EQ(::chmod(open.c_str(), 0777), 0);
    EXPECT_EQ(listed(), 0) << open;
    ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
  }
}

TEST_F(AuditTest, APathThatLeadsNowhereAndAFileAreErrors) {
  AuditRequest request = Request();
  request.directory = At("absent");
  EXPECT_EQ(probe::audit::Audit(request).error().err, ENOENT);
  request.directory = At("outside/key");
  Result<Report> file = probe::audit::Audit(request);
  EXPECT_EQ(file.error().kind, Kind::kUsage);
  EXPECT_THAT(file.error().text, HasSubstr("--policy bind"));
  request.policy = Policy::kBind;
  EXPECT_EQ(probe::audit::Audit(request)->standing, Standing::kSafe);
}

}  // namespace
}  // namespace taskcell::probe::audit
