// The walk below an audit: how deep, how wide, how long, by how many threads.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/mounts/worker.h"
#include "tests/support/hung_files.h"
#include "tests/support/lying_files.h"
#include "tests/unit/probe/mounts/tree_fixture.h"

namespace taskcell::probe::audit {
namespace {

namespace fs = std::filesystem;

class WalkTest : public test::TreeTest {
 protected:
  // Makes a chain of `depth` directories called `name` in the tree and returns the last.
  UniqueFd MakeDeep(unsigned depth, const std::string& name) const {
    UniqueFd at = sys::Open(At("tree"), O_RDONLY | O_DIRECTORY).value();
    for (unsigned level = 0; level < depth; ++level) {
      EXPECT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
      at = UniqueFd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    return at;
  }

  // `last` is as deep as may be: one below it is too deep.
  void ExpectNoDeeperThan(const UniqueFd& last) const {
    EXPECT_EQ(Audit().standing, Standing::kSafe);
    ASSERT_EQ(::mkdirat(last.get(), "d", 0755), 0);
    Report report = Audit();
    EXPECT_EQ(report.standing, Standing::kUnknown);
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_EQ(report.findings[0].code, Code::kTooDeep);
  }

  // Returns what one thread finds.
  static Report ExpectTheSameByAnyThreads(AuditRequest request) {
    request.walk.threads = 1;
    Report one = probe::audit::Audit(request).value();
    for (unsigned threads : {2U, 4U, kMaxThreads}) {
      request.walk.threads = threads;
      Report other = probe::audit::Audit(request).value();
      EXPECT_EQ(other.counts, one.counts) << threads;
      EXPECT_EQ(other.looked_at, one.looked_at) << threads;
      EXPECT_EQ(FoundIn(other), FoundIn(one)) << threads;
    }
    return one;
  }
};

TEST_F(WalkTest, TreesDeeperThanAnyPathAreWalkedToTheirEnd) {
  constexpr unsigned kDepth = 300;  // of 201 bytes each: some 60,000
  const std::string name(200, 'd');
  UniqueFd last = MakeDeep(kDepth, name);
  ASSERT_EQ(::mkfifoat(last.get(), "pipe", 0600), 0);
  Put("tree/z/file", "x");  // what comes after the deep one, whatever the order
  Put("tree/a/file", "x");
  Report report = Audit();
  EXPECT_EQ(report.looked_at, kDepth + 5);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].code, Code::kFifo);
  EXPECT_EQ(report.findings[0].path.size(), kDepth * 201 + 4);
}

// 2,100 directories are also more than a process has descriptors for; then those that stay below
// their own directory are followed.
TEST_F(WalkTest, LinksBelowAnyPathAreFollowed) {
  for (const auto& [depth, name] : {std::pair(25U, std::string(200, 'd')), {2100U, "d"}}) {
    const UniqueFd last = MakeDeep(depth, name);
    const UniqueFd file(::openat(last.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    std::map<std::string, std::pair<std::string, std::string>> links = {
        {"inside", {"file", "symlink_inside"}},
        {"gone", {"nowhere", "symlink_dangling"}},
        {"loop", {"loop", "symlink_unresolved"}},
        {"magic", {"/proc/self/cwd", "magic_link"}}};
    if (depth < 100) {
      links["out"] = {"/etc/passwd", "symlink_escapes"};
      links["up"] = {"../" + name, "symlink_inside"};
    }
    for (const auto& [link, target] : links)
      ASSERT_EQ(::symlinkat(target.first.c_str(), last.get(), link.c_str()), 0);
    const Report report = Audit();
    std::map<std::string, std::pair<std::string, std::string>> found;
    for (const Finding& each : report.findings) {
      const std::string link = each.path.substr(each.path.rfind('/') + 1);
      found[link] = {links.at(link).first, std::string(TextOf(each.code).name)};
    }
    EXPECT_EQ(found, links) << depth;
    EXPECT_EQ(test::Run({"/bin/sh", "-c", "rm -rf -- \"$0\"/*", At("tree")}).status, 0);
  }
}

TEST_F(WalkTest, WideAndDeepTreesAreWalkedWholeByFewDescriptors) {
  std::string path = "tree";
  std::size_t made = 0;
  for (int level = 0; level < 100; ++level) {
    for (int i = 0; i < 12; ++i, ++made) Put(Text(path, "/side", i, "/file"), "");
    path += "/down";
    made = made + 1;
  }
  fs::create_directories(At(path));
  const std::size_t entries = 100 * (12 * 2 + 1);
  int status = test::InChild([&] {
    constexpr unsigned kFiles = 128;
    struct rlimit few = {kFiles, kFiles};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 2;
    Report report = Audit();
    return report.standing == Standing::kSafe && report.looked_at == entries ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(WalkTest, TheDepthBoundIsExact) { ExpectNoDeeperThan(MakeDeep(kMaxDepth, "d")); }

TEST_F(WalkTest, TheBoundOfAPathIsExact) {
  constexpr std::size_t kNameBytes = 255;
  const std::string name(kNameBytes, 'd');
  ExpectNoDeeperThan(MakeDeep(kMaxPathBytes / (kNameBytes + 1), name));
}

TEST_F(WalkTest, TheEntryBoundIsExact) {
  for (int i = 0; i < 600; ++i) Put(Text("tree/", i % 7, "/", i), "");
  AuditRequest request = Request();
  for (unsigned threads : {1U, 2U, 7U}) {
    request.walk.threads = threads;
    request.walk.max_entries = 607;
    EXPECT_EQ(probe::audit::Audit(request)->standing, Standing::kSafe);
    for (const uint64_t max : {606U, 300U, 1U, 0U}) {
      request.walk.max_entries = max;
      std::atomic<uint64_t> safe = 0;
      request.safe = [&safe](std::string_view /*path*/) { ++safe; };
      Report report = probe::audit::Audit(request).value();
      EXPECT_EQ(report.standing, Standing::kUnknown);
      EXPECT_EQ(FoundIn(report)["."], std::set<std::string>{"too_many"});
      EXPECT_EQ(report.looked_at, max) << threads;
      EXPECT_LE(safe, max);
    }
    request.safe = {};
  }
}

// The names that may be shown, and what is in both directories, are counted together.
TEST_F(WalkTest, TheEntryBoundOfAnAgentIsExact) {
  for (int i = 0; i < 20; ++i) {
    Put(Text("tree/SKILLS/", i), "");
    Link("0", Text("tree/wiki/", i));
  }
  constexpr uint64_t kEntries = std::size(mounts::kAgentEntries) + 40;
  AuditRequest request = Request(Policy::kAgent);
  request.walk.max_entries = kEntries;
  EXPECT_EQ(probe::audit::Audit(request)->counts[static_cast<std::size_t>(Code::kTooMany)], 0U);
  for (const uint64_t max : {kEntries - 1, kEntries - 30}) {
    request.walk.max_entries = max;
    const Report report = probe::audit::Audit(request).value();
    EXPECT_EQ(report.looked_at, max);
    EXPECT_GT(report.counts[static_cast<std::size_t>(Code::kTooMany)], 0U);
  }
}

TEST_F(WalkTest, WhenTheTimeIsUpTheRestIsNotJudged) {
  Put("tree/a", "x");
  AuditRequest request = Request();
  request.walk.deadline = std::chrono::steady_clock::now();
  Report report = probe::audit::Audit(request).value();
  EXPECT_EQ(report.standing, Standing::kUnknown);
  EXPECT_EQ(FoundIn(report)["."], std::set<std::string>{"timeout"});
}

TEST_F(WalkTest, EveryThreadCountFindsTheSame) {
  for (int i = 0; i < 400; ++i) {
    Put(Text("tree/", i % 5, "/", i % 17, "/f", i), "x");
    if (i % 3 == 0) Link("../../../../outside/key", Text("tree/", i % 5, "/", i % 17, "/l", i));
    if (i % 5 == 0) HardLink(Text("tree/", i % 5, "/", i % 17, "/f", i), Text("tree/h", i));
  }
  ExpectTheSameByAnyThreads(Request());
}

// What a directory shows again may lie in what another thread took over.
TEST_F(WalkTest, EveryThreadCountFindsTheSameMounts) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  for (const char* name : {"tree/a/b/c", "tree/d/e/f", "tree/g"}) fs::create_directories(At(name));
  Link("/etc/passwd", "outside/link");
  EXPECT_EQ(test::InChild([this] {
              if (!test::EnterOwnMounts()) return 90;
              const std::pair<const char*, const char*> binds[] = {
                  {"tree", "tree/a/b/c"}, {"tree/d", "tree/d/e/f"}, {"outside", "tree/g"}};
              for (const auto& [from, to] : binds) {
                if (::mount(At(from).c_str(), At(to).c_str(), nullptr, MS_BIND, nullptr) != 0)
                  return 91;
              }
              AuditRequest request = Request();
              request.walk.crossing = mounts::Crossing::kOtherMounts;
              const Report one = ExpectTheSameByAnyThreads(request);
              EXPECT_EQ(one.counts[static_cast<std::size_t>(Code::kMountLoop)], 2U);
              return HasFailure() ? 1 : 0;
            }),
            0);
}

TEST_F(WalkTest, OfWhatIsMountedItIsSaidWhoServesIt) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  fs::create_directories(At("tree/served"));
  fs::create_directories(At("tree/bound"));
  EXPECT_EQ(test::InChild([this] {
              if (!test::EnterOwnMounts()) return 90;
              const test::LyingFiles lying(At("tree/served"), 0, "link");
              if (!lying.mounted()) return 91;
              if (::mount(At("outside").c_str(), At("tree/bound").c_str(), nullptr, MS_BIND,
                          nullptr) != 0)
                return 92;
              const Found found = FoundIn(Audit());
              EXPECT_EQ(found.at("served"), (std::set<std::string>{"foreign_content", "mount"}));
              EXPECT_EQ(found.at("bound"), std::set<std::string>{"mount"});
              return HasFailure() ? 1 : 0;
            }),
            0);
}

// Entries come and go all the time while the tree is walked: the audit ends, and says so of each
// directory that it saw change under it. What is moved past it may be missed: nothing that is here
// is unsafe.
TEST_F(WalkTest, ATreeThatChangesIsEitherJudgedOrSaidToHaveChanged) {
  Put("tree/a/b/c/file", "x");
  Put("outside/b/c/file", "x");
  std::atomic<bool> done = false;
  std::thread changer([&] {
    while (!done) {
      (void)::renameat2(AT_FDCWD, At("tree/a").c_str(), AT_FDCWD, At("outside").c_str(),
                        RENAME_EXCHANGE);
      (void)::rename(At("tree/a/b/c/file").c_str(), At("tree/a/b/moved").c_str());
      (void)::rename(At("tree/a/b/moved").c_str(), At("tree/a/b/c/file").c_str());
    }
  });
  int changed = 0;
  for (int round = 0; round < 2000; ++round) {
    Report report = Audit();
    for (const Finding& finding : report.findings) ASSERT_EQ(finding.code, Code::kChanged);
    if (report.standing == Standing::kUnknown) ++changed;
  }
  done = true;
  changer.join();
  EXPECT_GT(changed, 0);
}

}  // namespace
}  // namespace taskcell::probe::audit
