// Somebody saves a file over and over as editors do, by a new file renamed over the old one: the
// name always stands for one whole version, and so does whatever is made of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <string>

#include "launcher/mounts/entry.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"
#include "probe/mounts/audit.h"
#include "tests/race/swapper.h"
#include "tests/support/temp_directory.h"
#include "tests/support/wait_for.h"
#include "tests/support/without_openat2.h"

namespace taskcell::test {
namespace {

constexpr std::array<const char*, 2> kVersions = {"version one", "version two, longer"};
constexpr std::size_t kMaxBytes = 4096;

class SavedFileRaceTest : public testing::Test, protected TempDirectory {
 protected:
  SavedFileRaceTest() : TempDirectory("saved-file-race") {
    for (const char* name : {"SOUL.md", "wiki/page"}) Put(Text("agent/", name), kVersions[0]);
  }

  // Saves the next version of `name`.
  std::function<void()> Save(const std::string& name) const {
    return [path = At(name), next = At("next"), turn = 0U]() mutable {
      const int fd = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
      const std::string_view text = kVersions[++turn % kVersions.size()];
      (void)!::write(fd, text.data(), text.size());
      (void)::close(fd);
      (void)::rename(next.c_str(), path.c_str());
    };
  }

  // Has `read` give the text of the file again and again while it is saved.
  void Race(const std::string& name, int rounds, const std::function<std::string()>& read) const {
    std::map<std::string, int> seen;
    Swapper swapper(Save(name));
    const Patience patience;
    for (int round = 0; round < rounds || (seen.size() < kVersions.size() && patience.Lasts());
         ++round) {
      const std::string text = read();
      ASSERT_TRUE(text == kVersions[0] || text == kVersions[1]) << "'" << text << "'";
      ++seen[text];
    }
    EXPECT_EQ(seen.size(), kVersions.size()) << "control: both were met";
  }

  UniqueFd Open(const std::string& name) const {
    return sys::Open(At(name), O_RDONLY | O_DIRECTORY).value();
  }

  // The text of `name` in a new snapshot; why it is not there otherwise.
  std::string Copied(const std::string& name) const {
    std::filesystem::create_directory(At("copy"));
    UniqueFd agent = Open("agent");
    UniqueFd copy = Open("copy");
    Result<mounts::Snapshot> snapshot = mounts::SnapshotAgentDirectory(agent.get(), copy.get());
    if (!snapshot.ok()) return snapshot.error().text;
    Result<std::string> text = sys::ReadFile(copy.get(), name, kMaxBytes);
    std::string got = text.ok()                    ? text.value()
                      : snapshot->warnings.empty() ? text.error().text
                                                   : snapshot->warnings.front();
    UniqueFd top = Open(".");
    EXPECT_TRUE(mounts::RemoveTree(top.get(), "copy").ok());
    return got;
  }
};

TEST_F(SavedFileRaceTest, ItIsJudgedSafeEachTime) {
  UniqueFd agent = Open("agent");
  Race("agent/SOUL.md", RaceRounds(20'000), [&]() -> std::string {
    Result<mounts::Finding> finding = mounts::Judge(agent.get(), "SOUL.md", cell::EntryKind::kFile);
    if (!finding.ok()) return finding.error().text;
    if (finding->verdict != mounts::Verdict::kSafe) return finding->note;
    return sys::ReadAll(finding->fd.get(), kMaxBytes).value();
  });
}

TEST_F(SavedFileRaceTest, ASnapshotHasOneVersionOfItEachTime) {
  constexpr int kRounds = 100;
  Race("agent/SOUL.md", kRounds, [this] { return Copied("SOUL.md"); });
  Race("agent/wiki/page", kRounds, [this] { return Copied("wiki/page"); });
}

TEST_F(SavedFileRaceTest, AnAuditCallsItSafeEachTime) {
  probe::audit::AuditRequest request;
  request.directory = At("agent");
  request.policy = probe::audit::Policy::kAgent;
  Swapper swapper(Save("agent/SOUL.md"));
  for (int round = 0; round < RaceRounds(2000); ++round) {
    Result<probe::audit::Report> report = probe::audit::Audit(request);
    ASSERT_TRUE(report.ok()) << report.error().text;
    ASSERT_EQ(report->entries.at(0).name, "SOUL.md");
    ASSERT_EQ(report->entries.at(0).verdict, mounts::Verdict::kSafe)
        << report->entries.at(0).reason << ": " << report->entries.at(0).note;
  }
}

}  // namespace
}  // namespace taskcell::test
