// What resolves names of an agent directory, against somebody who exchanges them all the time:
// whatever is answered is one of few things, and nothing of what was exchanged in is ever read.
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <thread>
#include <vector>

#include "gateway/config/agent_config.h"
#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "tests/race/swapper.h"
#include "tests/support/fixture.h"
#include "tests/support/wait_for.h"
#include "tests/support/without_openat2.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using mounts::Reason;
using mounts::Verdict;

const int kRounds = RaceRounds(20'000);
const int kSnapshotRounds = HasFewRounds() ? 100 : 500;
constexpr int kLanes = 8;
constexpr std::size_t kMaxBytes = 4096;
constexpr char kCanary[] = "the canary that no cell may see";

class ResolverRaceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    Put("outside/key", kCanary);
    Put("outside/dir/SOUL.md", kCanary);
    Put("outside/dir/page", kCanary);
    fs::create_directories(path_ + "/agent");
  }
  void TearDown() override {
    UniqueFd tmp = sys::Open("/tmp", O_RDONLY | O_DIRECTORY).value();
    EXPECT_TRUE(mounts::RemoveTree(tmp.get(), path_.substr(5)).ok());
  }
  std::string At(const std::string& name) const { return path_ + "/" + name; }
  void Put(const std::string& name, std::string_view content) const {
    fs::create_directories(fs::path(At(name)).parent_path());
    std::ofstream(At(name), std::ios::binary) << content;
  }
  UniqueFd Open(const std::string& name) const {
    return sys::Open(At(name), O_RDONLY | O_DIRECTORY).value();
  }

  std::string path_ = "/tmp/taskcell-race-XXXXXX";
};

// What stands at the name half of the time.
struct Intruder {
  const char* name;
  cell::EntryKind wanted;
  // Makes what the entry is exchanged with; null where `swap` does the work.
  void (*make)(const std::string& at, const std::string& outside);
  bool flips;  // there are moments without any
  std::set<Reason> reasons;
  std::function<void()> (*swap)(const std::string& at, const std::string& outside) = nullptr;
};
void PrintTo(const Intruder& intruder, std::ostream* out) { *out << intruder.name; }

void MakeLink(const std::string& at, const std::string& outside) {
  fs::create_symlink(outside + "/key", at);
}

class JudgeRaceTest : public ResolverRaceTest, public testing::WithParamInterface<Intruder> {
 protected:
  void Race(const Intruder& intruder) const;
};

void JudgeRaceTest::Race(const Intruder& intruder) const {
  const bool file = intruder.wanted == cell::EntryKind::kFile;
  Put(file ? "agent/entry" : "agent/entry/page", "good");
  std::function<void()> swap = Exchange(At("agent/entry"), At("agent/other"));
  if (intruder.make != nullptr)
    intruder.make(At("agent/other"), At("outside"));
  else
    swap = intruder.swap(At("agent/entry"), At("outside"));
  UniqueFd agent = Open("agent");
  std::map<std::string_view, int> seen;
  int rounds = 0;
  {
    Swapper swapper(swap);
    // On a busy machine the swapper may get no turn for long: on until it had one.
    const test::Patience patience;
    for (; rounds < kRounds || ((seen["safe"] == rounds || seen["safe"] == 0) && patience.Lasts());
         ++rounds) {
      Result<mounts::Finding> finding = mounts::Judge(agent.get(), "entry", intruder.wanted);
      ASSERT_TRUE(finding.ok()) << finding.error().text;
      ++seen[finding->verdict == Verdict::kSkip ? Name(finding->reason) : Name(finding->verdict)];
      if (finding->verdict == Verdict::kSafe) {
        ASSERT_EQ(file ? sys::ReadAll(finding->fd.get(), kMaxBytes).value()
                       : sys::ReadFile(finding->fd.get(), "page", kMaxBytes).value(),
                  "good");
      } else if (finding->verdict == Verdict::kSkip) {
        ASSERT_TRUE(intruder.reasons.contains(finding->reason)) << Name(finding->reason);
      } else {
        ASSERT_TRUE(intruder.flips) << "it was there all the time";
      }
    }
  }
  EXPECT_GT(seen["safe"], 0) << "control: both were met";
  EXPECT_LT(seen["safe"], rounds) << "control: both were met";
  for (const auto& [outcome, count] : seen) RecordProperty(std::string(outcome), count);
}

TEST_P(JudgeRaceTest, OnlyTheGoodEntryIsEverSafe) { Race(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Intruders, JudgeRaceTest,
    testing::Values(
        Intruder{
            "Link", cell::EntryKind::kFile, MakeLink, false, {Reason::kSymlink, Reason::kRace}},
        Intruder{"FlippingLink",
                 cell::EntryKind::kFile,
                 nullptr,
                 true,
                 {Reason::kSymlink, Reason::kRace},
                 [](const std::string& at, const std::string& outside) {
                   return FlipToLink(at, outside + "/key");
                 }},
        Intruder{"SecondName",
                 cell::EntryKind::kFile,
                 nullptr,
                 false,
                 {Reason::kHardlink, Reason::kRace},
                 [](const std::string& at, const std::string& outside) {
                   return std::function<void()>([at, second = outside + "/second"] {
                     if (::link(at.c_str(), second.c_str()) == 0) (void)::unlink(second.c_str());
                   });
                 }},
        Intruder{"HardLink",
                 cell::EntryKind::kFile,
                 [](const std::string& at, const std::string& outside) {
                   fs::create_hard_link(outside + "/key", at);
                 },
                 false,
                 {Reason::kHardlink, Reason::kRace}},
        Intruder{
            "Directory",
            cell::EntryKind::kFile,
            [](const std::string& at, const std::string& /*outside*/) { fs::create_directory(at); },
            false,
            {Reason::kWrongKind, Reason::kRace}},
        Intruder{"Fifo",
                 cell::EntryKind::kFile,
                 [](const std::string& at, const std::string& /*outside*/) {
                   EXPECT_EQ(::mkfifo(at.c_str(), 0666), 0);
                 },
                 false,
                 {Reason::kSpecial, Reason::kRace}},
        Intruder{"LinkToADirectory",
                 cell::EntryKind::kDirectory,
                 [](const std::string& at, const std::string& outside) {
                   fs::create_directory_symlink(outside + "/dir", at);
                 },
                 false,
                 {Reason::kSymlink, Reason::kRace}},
        Intruder{"FileForADirectory",
                 cell::EntryKind::kDirectory,
                 [](const std::string& at, const std::string& /*outside*/) {
                   std::ofstream(at) << kCanary;
                 },
                 false,
                 {Reason::kWrongKind, Reason::kRace}}),
    [](const auto& row) { return std::string(row.param.name); });

class MountRaceTest : public JudgeRaceTest {};

TEST_P(MountRaceTest, WhatIsMountedOverTheEntryIsNeverSafe) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  int status = InChild([this] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return 2;
    Race(GetParam());
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

std::function<void()> MountOver(std::string what, std::string at) {
  return [what = std::move(what), at = std::move(at)] {
    (void)::mount(what.c_str(), at.c_str(), nullptr, MS_BIND, nullptr);
    (void)::umount2(at.c_str(), MNT_DETACH);
  };
}

INSTANTIATE_TEST_SUITE_P(
    Mounts, MountRaceTest,
    testing::Values(Intruder{"File",
                             cell::EntryKind::kFile,
                             nullptr,
                             false,
                             {Reason::kMount, Reason::kRace},
                             [](const std::string& at, const std::string& outside) {
                               return MountOver(outside + "/key", at);
                             }},
                    Intruder{"Directory",
                             cell::EntryKind::kDirectory,
                             nullptr,
                             false,
                             {Reason::kMount, Reason::kRace},
                             [](const std::string& at, const std::string& outside) {
                               return MountOver(outside + "/dir", at);
                             }}),
    [](const auto& row) { return std::string(row.param.name); });

// A directory on the way is exchanged for a link of another user.
TEST_F(ResolverRaceTest, APinnedPathIsTheGoodOneOrRefused) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to give a link away");
  Put("way/agent/SOUL.md", "good");
  Put("outside/agent/SOUL.md", kCanary);
  fs::create_symlink(At("outside"), At("other"));
  ASSERT_EQ(::lchown(At("other").c_str(), 12345, 12345), 0);
  int pinned = 0;
  int rounds = 0;
  {
    Swapper swapper(Exchange(At("way"), At("other")));
    const test::Patience patience;
    for (; rounds < kRounds || ((pinned == rounds || pinned == 0) && patience.Lasts()); ++rounds) {
      Result<mounts::PinnedPath> path = mounts::PinTrustedPath(At("way/agent"), {});
      if (!path.ok()) {
        ASSERT_EQ(path.error().kind, Kind::kViolation) << path.error().text;
        continue;
      }
      ++pinned;
      UniqueFd agent = sys::OpenNoFollow(path->fd.get(), ".", O_RDONLY | O_DIRECTORY).value();
      ASSERT_EQ(sys::ReadFile(agent.get(), "SOUL.md", kMaxBytes).value(), "good");
    }
  }
  EXPECT_GT(pinned, 0) << "control: both were met";
  EXPECT_LT(pinned, rounds) << "control: both were met";
}

// A whole snapshot, with each level of the way to a page exchanged in turn.
class SnapshotRaceTest : public ResolverRaceTest, public testing::WithParamInterface<const char*> {
 protected:
  // Every text below `directory`.
  static std::set<std::string> TextsIn(const std::string& directory) {
    std::set<std::string> texts;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      EXPECT_FALSE(entry.is_symlink()) << entry.path();
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      texts.insert({std::istreambuf_iterator<char>(in), {}});
    }
    return texts;
  }

  // btrfs: a name that is exchanged while its directory is listed moves past the end of the list.
  bool ListsMayLack() const {
    struct statfs info = {};
    return ::statfs(At("").c_str(), &info) != 0 || info.f_type == BTRFS_SUPER_MAGIC;
  }

  // One snapshot into the new directory `name`; whether nothing was left out.
  bool TakesAll(const std::string& name) const {
    fs::create_directory(At(name));
    UniqueFd agent = Open("agent");
    UniqueFd copy = Open(name);
    Result<mounts::Snapshot> snapshot = mounts::SnapshotAgentDirectory(agent.get(), copy.get());
    EXPECT_TRUE(snapshot.ok()) << snapshot.error().text;
    if (!snapshot.ok()) return false;
    std::set<std::string> texts = TextsIn(At(name));
    texts.erase("good");
    EXPECT_TRUE(texts.empty()) << *texts.begin();
    bool all = fs::exists(At(name + "/SOUL.md")) && fs::exists(At(name + "/wiki/a/b/page"));
    const bool warned = !snapshot->warnings.empty();
    EXPECT_TRUE(warned != all || (!warned && ListsMayLack()))
        << "what was left out is warned about";
    UniqueFd top = Open("");
    EXPECT_TRUE(mounts::RemoveTree(top.get(), name).ok());
    return all;
  }
};

TEST_P(SnapshotRaceTest, NothingFromOutsideIsEverCopied) {
  const std::string swapped = GetParam();
  Put("agent/SOUL.md", "good");
  Put("agent/wiki/a/b/page", "good");
  Put("outside/dir/a/b/page", kCanary);
  Put("outside/dir/b/page", kCanary);
  fs::create_symlink(
      fs::is_directory(At("agent/" + swapped)) ? At("outside/dir") : At("outside/key"),
      At("agent/other"));
  // A round is mostly a wait for the times of a swapped file to settle: several at once, which meet
  // the same swaps.
  const test::Patience patience;
  std::atomic<int> rounds = 0;
  std::atomic<int> whole = 0;
  std::atomic<int> partial = 0;
  {
    Swapper swapper(Exchange(At("agent/" + swapped), At("agent/other")));
    std::vector<std::thread> lanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes.emplace_back([&, copy = Text("copy-", lane)] {
        auto is_one_sided = [&] { return whole == 0 || partial == 0; };
        while ((rounds++ < kSnapshotRounds || (is_one_sided() && patience.Lasts())) &&
               !HasFailure())
          ++(TakesAll(copy) ? whole : partial);
      });
    }
    for (std::thread& lane : lanes) lane.join();
  }
  EXPECT_GT(whole, 0) << "control: both were met";
  EXPECT_GT(partial, 0) << "control: both were met";
}

INSTANTIATE_TEST_SUITE_P(Levels, SnapshotRaceTest,
                         testing::Values("SOUL.md", "wiki", "wiki/a", "wiki/a/b", "wiki/a/b/page"),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::erase_if(name, [](char c) { return c == '/' || c == '.'; });
                           return name;
                         });

// The directory of an agent is found by what its agent.toml says, so both must be of one directory.
TEST_F(ResolverRaceTest, AnAgentsFileAndItsDirectoryAreAlwaysOfTheSameAgent) {
  for (const char* which : {"one", "two"}) {
    Put(Text("agents/", which, "/agent.toml"),
        Text("[agent]\nname = \"a1\"\n[model]\npreferred = \"", which, "\"\n"));
    Put(Text("agents/", which, "/SOUL.md"), which);
  }
  fs::rename(At("agents/two"), At("two"));
  gateway::Home home = gateway::OpenHome(path_).value();
  std::map<std::string, int> seen;
  {
    Swapper swapper(Exchange(At("agents/one"), At("two")));
    const test::Patience patience;
    for (int round = 0; round < kRounds || (seen.size() < 2 && patience.Lasts()); ++round) {
      Result<gateway::Agent> agent = gateway::FindAgent(home, "a1");
      if (!agent.ok()) {  // both may be missed while they change places
        ASSERT_EQ(agent.error().code, "agent_not_found") << agent.error().text;
        continue;
      }
      ++seen[agent->config.model];
      ASSERT_EQ(sys::ReadFile(agent->directory.get(), "SOUL.md", kMaxBytes).value(),
                agent->config.model);
    }
  }
  EXPECT_EQ(seen.size(), 2U) << "control: both were met";
}

TEST_F(ResolverRaceTest, AnAgentIsNeverFoundThroughALink) {
  Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n");
  Put("outside/dir/agent.toml", "[agent]\nname = \"a1\"\n");
  Put("outside/agents/a1/agent.toml", "[agent]\nname = \"a1\"\n");
  Put("outside/agents/a1/SOUL.md", kCanary);
  Put("agents/a1/SOUL.md", "good");
  gateway::Home home = gateway::OpenHome(path_).value();
  for (const auto& [name, target] : std::map<std::string, std::string>{
           {"agents/a1", At("outside/dir")}, {"agents", At("outside/agents")}}) {
    int found = 0;
    int rounds = 0;
    Swapper swapper(FlipToLink(At(name), target));
    const test::Patience patience;
    for (; rounds < kRounds || ((found == rounds || found == 0) && patience.Lasts()); ++rounds) {
      Result<gateway::Agent> agent = gateway::FindAgent(home, "a1");
      if (!agent.ok()) {
        ASSERT_TRUE(std::set<std::string_view>(
                        {"agent_not_found", "agent_dir_unmountable", "invalid_config"})
                        .contains(agent.error().code))
            << agent.error().code << ": " << agent.error().text;
        continue;
      }
      ++found;
      ASSERT_EQ(sys::ReadFile(agent->directory.get(), "SOUL.md", kMaxBytes).value(), "good");
    }
    EXPECT_GT(found, 0) << name;
    EXPECT_LT(found, rounds) << name;
  }
}

}  // namespace
}  // namespace taskcell::test
