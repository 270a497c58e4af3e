// taskcell-probe mounts as a person or a script runs it: exit statuses, forms, what is mounted.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "launcher/base/text.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "probe/mounts/inspector.h"
#include "probe/mounts/worker.h"
#include "tests/support/access_list.h"
#include "tests/support/hung_files.h"
#include "tests/support/inode_flag.h"
#include "tests/unit/probe/mounts/tree_fixture.h"

namespace taskcell::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class MountsProgramTest : public TreeTest {
 protected:
  // Runs the program below the test's directory; `in_child` before.
  Outcome Mounts(std::vector<std::string> arguments, std::function<void()> in_child = {}) const {
    arguments.insert(arguments.begin(), {Program("taskcell-probe"), "mounts"});
    RunOptions options;
    options.directory = path();
    options.in_child = std::move(in_child);
    return test::Run(arguments, options);
  }
  // The codes of a directory's findings in --json, as "code path".
  static std::set<std::string> Codes(const Outcome& ran) {
    std::set<std::string> codes;
    for (const json& report : json::parse(ran.out)) {
      for (const json& finding : report["findings"])
        codes.insert(
            Text(finding["code"].get<std::string>(), " ", finding["path"].get<std::string>()));
    }
    return codes;
  }
  // In the child: a mount namespace of its own.
  static void OwnMounts() {
    if (!EnterOwnMounts()) ::_exit(91);
  }
  static void Bind(const std::string& from, const std::string& to) {
    if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) ::_exit(92);
  }
};

TEST_F(MountsProgramTest, TheExitStatusTellsSafeFromFindingsFromUsageFromUnknown) {
  Put("tree/file", "x");
  EXPECT_EQ(Mounts({"tree"}).status, 0);
  EXPECT_EQ(Mounts({"--policy", "bind", "tree", "tree/file"}).status, 0);
  EXPECT_EQ(Mounts({"--max-entries", "1", "tree", "--json"}).status, 0);
  EXPECT_EQ(Mounts({"--max-entries", "0", "tree"}).status, 3);
  EXPECT_EQ(Mounts({"absent"}).status, 3);
  EXPECT_EQ(Mounts({}).status, 2);
  EXPECT_EQ(Mounts({"--policy", "none", "tree"}).status, 2);
  EXPECT_EQ(Mounts({"--json", "-0", "tree"}).status, 2);
  EXPECT_EQ(Mounts({"--timeout", "0s", "tree"}).status, 2);
  EXPECT_EQ(Mounts({"--timeout", "25h", "tree"}).status, 2);
  EXPECT_EQ(Mounts({"--threads", "9", "tree"}).status, 2);
  EXPECT_EQ(Mounts({"--owner", "no-such-user", "tree"}).status, 2);
  EXPECT_EQ(Mounts({"tree/file"}).status, 2) << "a file, and the policy is for directories";
  EXPECT_EQ(Mounts({"tree/file", "tree"}).status, 2);
  EXPECT_EQ(Mounts({"--unsafe-subtree", "skip", "tree"}).status, 2);
  EXPECT_EQ(Mounts({"--unsafe-subtree", "none", "--policy", "agent", "tree"}).status, 2);
  Link("/etc/passwd", "tree/link");
  EXPECT_EQ(Mounts({"tree"}).status, 1);
  EXPECT_EQ(Mounts({"absent", "tree"}).status, 1) << "what was found is certain";
  EXPECT_EQ(Mounts({"tree", "tree/file"}).status, 2) << "a wrong command line is, too";
}

TEST_F(MountsProgramTest, ADirectoryThatCannotBeOpenedStandsInEveryForm) {
  Put("tree/file", "x");
  const Outcome strict = Mounts({"--json", "absent", "tree"});
  EXPECT_EQ(strict.status, 3);
  EXPECT_THAT(strict.err, HasSubstr("absent"));
  json reports = json::parse(strict.out);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0]["directory"], "absent");
  EXPECT_EQ(reports[0]["verdict"], "unknown");
  EXPECT_EQ(reports[0]["reason"], "unreadable");
  EXPECT_THAT(reports[0]["note"].get<std::string>(), HasSubstr("No such file"));
  EXPECT_EQ(reports[1]["verdict"], "safe");
  EXPECT_EQ(reports[1]["reason"], "");
  reports = json::parse(Mounts({"--json", "--policy", "agent", "absent"}).out);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0]["entry"], ".");
  EXPECT_EQ(reports[0]["verdict"], "unknown");
  EXPECT_EQ(reports[0]["reason"], "unreadable");
  EXPECT_THAT(reports[0]["note"].get<std::string>(), HasSubstr("No such file"));
  reports = json::parse(Mounts({"--json", "tree/file"}).out);
  EXPECT_EQ(reports[0]["reason"], "wrong_kind");
  const Outcome sarif = Mounts({"--sarif", "absent"});
  EXPECT_EQ(sarif.status, 3);
  const json invocation = json::parse(sarif.out)["runs"][0]["invocations"][0];
  EXPECT_EQ(invocation["executionSuccessful"], false);
  EXPECT_THAT(invocation["toolExecutionNotifications"][0]["message"]["text"].get<std::string>(),
              HasSubstr("No such file"));
  const Outcome list = Mounts({"-0", "absent", "tree"});
  EXPECT_EQ(list.status, 3);
  EXPECT_EQ(list.out, std::string("tree/file\0", 10));
  EXPECT_THAT(Mounts({"absent", "tree"}).out, Not(HasSubstr("absent"))) << "standard error says it";
}

TEST_F(MountsProgramTest, AllAttributesOfFilesAreAskedForWhereThatIsWanted) {
  Put("tree/file", "with content");
  TASKCELL_REQUIRE(::setxattr(At("tree/file").c_str(), "user.overlay.redirect", "/etc", 4, 0) == 0,
                   "needs user attributes on the file system of /tmp");
  EXPECT_EQ(Mounts({"tree"}).status, 0) << "as the manual says";
  EXPECT_EQ(Codes(Mounts({"--json", "--xattrs", "tree"})),
            std::set<std::string>{"overlay_attribute file"});
}

TEST_F(MountsProgramTest, TheNullListIsWhatAScriptMayUse) {
  Put("tree/a\nb", "x");
  Put("tree/sub/c", "x");
  Link("c", "tree/sub/link");
  Outcome ran = Mounts({"-0", "tree"});
  std::set<std::string> listed;
  for (std::string_view path : Split(ran.out, '\0')) listed.insert(std::string(path));
  EXPECT_EQ(listed, (std::set<std::string>{"", "tree/a\nb", "tree/sub/c"}));
  Put("agent/SOUL.md", "x");
  Link("SOUL.md", "agent/CLAUDE.md");
  EXPECT_EQ(Mounts({"-0", "--policy", "agent", "agent"}).out, std::string("agent/SOUL.md\0", 14));
  EXPECT_EQ(Mounts({"-0", "--policy", "bind", "agent"}).out, std::string("agent\0", 6));
}

// Else a script could not tell it from a whole list of a directory that has findings.
TEST_F(MountsProgramTest, OfANullListTheStatusTellsThatItIsNotWhole) {
  for (const char* name : {"tree/a", "tree/b", "tree/c"}) Link("/etc/passwd", name);
  EXPECT_EQ(Mounts({"-0", "tree"}).status, 1);
  for (const std::vector<std::string>& cut :
       {std::vector<std::string>{"--max-entries", "2", "tree"}, {"absent", "tree"}}) {
    std::vector<std::string> arguments = cut;
    EXPECT_EQ(Mounts(arguments).status, 1) << cut[0];
    arguments.insert(arguments.begin(), "-0");
    EXPECT_EQ(Mounts(arguments).status, 3) << cut[0];
  }
}

TEST_F(MountsProgramTest, WhatIsMountedIsNamedAndOnlyEnteredWhenAsked) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  Put("tree/sub/covered", "x");
  Put("tree/file", "x");
  Link("/etc/passwd", "outside/link");
  auto mounts = [this] {
    OwnMounts();
    Bind(At("outside"), At("tree/sub"));
    Bind(At("outside/key"), At("tree/file"));
  };
  Outcome ran = Mounts({"--json", "tree"}, mounts);
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(Codes(ran), (std::set<std::string>{"mount sub", "mount file"}));
  ran = Mounts({"--json", "--cross-mounts", "tree"}, mounts);
  EXPECT_EQ(Codes(ran),
            (std::set<std::string>{"mount sub", "mount file", "symlink_escapes sub/link"}));
}

TEST_F(MountsProgramTest, ANameThatAMountShowsTwiceIsNoSecondName) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  fs::create_directories(At("tree/a"));
  fs::create_directories(At("tree/b"));
  HardLink("outside/key", "tree/a/key");
  const Outcome ran = Mounts({"--json", "--cross-mounts", "tree"}, [this] {
    OwnMounts();
    Bind(At("tree/a"), At("tree/b"));
  });
  EXPECT_EQ(Codes(ran), (std::set<std::string>{"mount b", "hard_link_leaves a/key",
                                               "hard_link_unresolved b/key"}));
}

TEST_F(MountsProgramTest, AMazeOfBindMountsEnds) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  Put("tree/a/b/file", "x");
  fs::create_directories(At("tree/c"));
  auto maze = [this] {
    OwnMounts();
    Bind(At("tree"), At("tree/a/b"));
    Bind(At("tree"), At("tree/c"));
    Bind(At("tree/c"), At("tree/a/b/a"));
  };
  Outcome ran = Mounts({"--json", "--cross-mounts", "tree"}, maze);
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("mount_loop"));
}

// It is told from its kind alone: nobody answers here.
TEST_F(MountsProgramTest, AFileSystemServedByAProcessIsNamed) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  TASKCELL_REQUIRE(::access("/dev/fuse", R_OK | W_OK) == 0, "needs /dev/fuse");
  fs::create_directories(At("served"));
  int status = InChild([this] {
    OwnMounts();
    UniqueFd server(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    std::string options = Text("fd=", server.get(), ",rootmode=40000,user_id=0,group_id=0");
    if (::mount("fuse", At("served").c_str(), "fuse", 0, options.c_str()) != 0) return 2;
    for (const char* name : {"served", "tree"}) {
      UniqueFd fd(::open(At(name).c_str(), O_PATH | O_CLOEXEC));
      struct statx info = {};
      if (!sys::StatEntry(fd.get(), "", AT_STATX_DONT_SYNC, info).ok()) return 3;
      probe::audit::FindingList list(probe::audit::Policy::kBind);
      probe::audit::LinkSets links(1);
      probe::audit::Inspector(fd.get(), {}, list, links).JudgeFileSystem(info);
      std::vector<probe::audit::Finding> found = list.Take();
      bool named = found.size() == 1 && found[0].code == probe::audit::Code::kForeignContent;
      if (named != (name == std::string("served"))) return 4;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

// A file system whose server takes requests and answers none but the first.
TEST_F(MountsProgramTest, AFileSystemThatHangsEndsTheAuditAndNotTheOtherWayRound) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  TASKCELL_REQUIRE(::access("/dev/fuse", R_OK | W_OK) == 0, "needs /dev/fuse");
  Put("tree/file", "x");
  fs::create_directories(At("tree/hung"));
  auto hung = [this] {
    OwnMounts();
    int fd = ::open("/dev/fuse", O_RDWR);  // NOLINT(android-cloexec-open): kept for the program
    std::string options = Text("fd=", fd, ",rootmode=40000,user_id=0,group_id=0");
    if (fd < 0 || ::mount("fuse", At("tree/hung").c_str(), "fuse", 0, options.c_str()) != 0)
      ::_exit(93);
    if (!AnswerFuseInit(fd)) ::_exit(94);
  };
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  Outcome ran = Mounts({"--json", "tree"}, hung);
  EXPECT_EQ(Codes(ran), (std::set<std::string>{"foreign_content hung", "mount hung"})) << ran.err;
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5)) << "it is not even asked";
  ran = Mounts({"--json", "--cross-mounts", "--timeout", "1s", "tree"}, hung);
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("\"hangs\""));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
  ran = Mounts({"tree/hung"}, hung);
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.err, HasSubstr("does not answer"));
}

// Also where the server has taken a request, and not even SIGKILL gets whoever waits out of it.
TEST_F(MountsProgramTest, ADirectoryThatHangsItselfIsGivenUpInTime) {
  TASKCELL_REQUIRE(HasFuse(), kNeedsFuse);
  fs::create_directories(At("tree/hung"));
  for (HungFiles::Answers answers : {HungFiles::Answers::kRoot, HungFiles::Answers::kNothing}) {
    EXPECT_EQ(InChild([&] {
                if (!EnterOwnMounts()) return 91;
                HungFiles hung(At("tree/hung"), answers);
                if (!hung.mounted()) return 92;
                const auto start = std::chrono::steady_clock::now();
                Outcome ran = Mounts({"--timeout", "500ms", "tree/hung"});
                // Without the time limit it is 5 seconds for an entry, and 10 for the directory.
                if (std::chrono::steady_clock::now() - start > std::chrono::seconds(8)) return 1;
                if (ran.status != 3) return 2;
                const std::string said = ran.out + ran.err;
                return said.find("does not answer") != said.npos ||
                               said.find("did not answer") != said.npos
                           ? 0
                           : 3;
              }),
              0)
        << static_cast<int>(answers);
  }
}

TEST_F(MountsProgramTest, CapabilitiesListsAndAttributesAreNamed) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to set them");
  for (const char* name : {"tree/program", "tree/listed", "tree/fixed"}) Put(name, "x");
  ASSERT_EQ(::chmod(At("tree/program").c_str(), 0755), 0);
  ASSERT_EQ(test::Run({"setcap", "cap_net_raw+ep", At("tree/program")}).status, 0);
  bool listed = LetUser1500Write(At("tree/listed"));
  TASKCELL_REQUIRE(listed, "needs access control lists on the file system of /tmp");
  fs::create_directories(At("tree/layer"));
  ASSERT_EQ(::setxattr(At("tree/layer").c_str(), "trusted.overlay.opaque", "y", 1, 0), 0);
  const bool immutable = SetInodeFlag(At("tree/fixed"), FS_IMMUTABLE_FL, true);
  std::set<std::string> codes = Codes(Mounts({"--json", "tree"}));
  if (immutable) {
    EXPECT_EQ(codes.erase("immutable fixed"), 1U);
    EXPECT_TRUE(SetInodeFlag(At("tree/fixed"), FS_IMMUTABLE_FL, false));
  }
  EXPECT_EQ(codes, (std::set<std::string>{"file_capability program", "access_list listed",
                                          "overlay_attribute layer"}))
      << "the group is root's";
}

// As many threads as there may be, for each a way down that is as deep and as long as may be, and
// more findings and linked files than are kept.
TEST_F(MountsProgramTest, TheMemoryIsBoundedHoweverLargeTheTree) {
  constexpr int kWays = 64;
  constexpr int kFilesAWay = 100;
  constexpr rlim_t kMaxBytes = 16U << 20U;
  constexpr std::size_t kLevelBytes = probe::audit::kMaxPathBytes / probe::audit::kMaxDepth;
  const TempDirectory own("audit", "/dev/shm");  // a disk takes a minute for so many directories
  fs::create_directories(own.At("tree"));
  for (unsigned chain = 0; chain < probe::audit::kMaxThreads; ++chain) {
    UniqueFd down = sys::Open(own.At("tree"), O_RDONLY | O_DIRECTORY).value();
    const std::string name(kLevelBytes - 1, static_cast<char>('a' + chain));
    for (unsigned level = 0; level < probe::audit::kMaxDepth; ++level) {
      ASSERT_EQ(::mkdirat(down.get(), name.c_str(), 0755), 0);
      down = sys::OpenNoFollow(down.get(), name, O_RDONLY | O_DIRECTORY).value();
    }
  }
  fs::create_directories(own.At("linked"));
  for (int way = 0; way < kWays; ++way) {
    const std::string bottom = Text("tree/way-", way, "/1/2/3/4/5/6/7/8/9/10/11/12");
    for (int file = 0; file < kFilesAWay; ++file) {
      const std::string name = Text(bottom, "/file-with-two-names-", file);
      own.Put(name, "x");
      own.HardLink(name, Text("linked/", way, "-", file));
    }
  }
  // Of its own: heap, stacks and what its libraries write.
  const std::string threads = std::to_string(probe::audit::kMaxThreads);
  const Outcome ran = Mounts({"--json", "--threads", threads, own.At("tree")}, [] {
    constexpr rlim_t kStack = 256U << 10U;
    constexpr struct rlimit kStacks = {kStack, kStack};
    constexpr struct rlimit kData = {kMaxBytes, kMaxBytes};
    if (::setrlimit(RLIMIT_STACK, &kStacks) != 0 || ::setrlimit(RLIMIT_DATA, &kData) != 0)
      ::_exit(90);
  });
  EXPECT_EQ(ran.status, 1) << ran.err;
  ASSERT_TRUE(json::accept(ran.out));
  const json counts = json::parse(ran.out)[0]["counts"];
  EXPECT_FALSE(counts.contains("too_deep"));
  EXPECT_EQ(counts["hard_link_leaves"], kWays * kFilesAWay);
}

TEST_F(MountsProgramTest, ADirectoryOnTheWayThatOthersMayWriteIsAFindingOfEveryPolicy) {
  Put("tree/SOUL.md", "x");
  ASSERT_EQ(::chmod(path().c_str(), 0777), 0);
  for (const char* policy : {"agent", "strict", "bind"}) {
    Outcome ran = Mounts({"--policy", policy, "tree"});
    EXPECT_EQ(ran.status, 1) << policy;
    EXPECT_THAT(ran.out, HasSubstr("ancestor_writable  " + path())) << policy;
  }
}

TEST_F(MountsProgramTest, RootsBindNamesAnotherUsersDirectory) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to give directories away");
  fs::create_directories(At("share/app"));
  EXPECT_EQ(Mounts({"--policy", "bind", "share/app"}).status, 0) << "control";
  for (const char* name : {"share", "share/app"})
    ASSERT_EQ(::chown(At(name).c_str(), 12345, 12345), 0);
  const Outcome ran = Mounts({"--json", "--policy", "bind", "share/app"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(Codes(ran),
            (std::set<std::string>{"ancestor_owner " + At("share"), "foreign_owner ."}));
  EXPECT_EQ(json::parse(ran.out)[0]["owner"], 0);
  EXPECT_EQ(Mounts({"--policy", "bind", "--owner", "12345", "share/app"}).status, 0);
}

}  // namespace
}  // namespace taskcell::test
