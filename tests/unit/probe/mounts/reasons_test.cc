// Every reason for which an entry of an agent directory is skipped: that it can come about, and
// that the manual lists those that can and no other.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <cerrno>
#include <fstream>
#include <ostream>

#include "launcher/base/text.h"
#include "launcher/mounts/entry.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"
#include "tests/support/hung_files.h"
#include "tests/support/syscall_faults.h"
#include "tests/support/wait_for.h"
#include "tests/unit/probe/mounts/tree_fixture.h"

namespace taskcell::probe::audit {
namespace {

namespace fs = std::filesystem;

// Why SOUL.md is skipped.
struct ReasonRow {
  const char* reason;
  bool (*spoil)(const std::string& soul);
};
void PrintTo(const ReasonRow& row, std::ostream* out) { *out << row.reason; }

class ReasonTest : public test::TreeTest, public testing::WithParamInterface<ReasonRow> {
 protected:
  std::string ReasonOfSoul() const { return Audit(Policy::kAgent).entries[0].reason; }
};
using RaceReasonTest = test::TreeTest;

const ReasonRow kReasons[] = {
    {"symlink", [](const std::string& soul) { return ::symlink("real", soul.c_str()) == 0; }},
    {"hardlink",
     [](const std::string& soul) {
       std::ofstream(soul + ".other") << "x";
       return ::link((soul + ".other").c_str(), soul.c_str()) == 0;
     }},
    {"wrong_kind", [](const std::string& soul) { return ::mkdir(soul.c_str(), 0755) == 0; }},
    {"mount",
     [](const std::string& soul) {
       std::ofstream(soul) << "x";
       return ::mount(soul.c_str(), soul.c_str(), nullptr, MS_BIND, nullptr) == 0;
     }},
    {"special", [](const std::string& soul) { return ::mkfifo(soul.c_str(), 0600) == 0; }},
    {"unreadable",
     [](const std::string& soul) {
       constexpr uid_t kNobody = 65534;
       fs::permissions(fs::path(soul).parent_path().parent_path(), fs::perms(0755));
       std::ofstream(soul) << "x";
       return ::chmod(soul.c_str(), 0) == 0 && ::setegid(kNobody) == 0 && ::seteuid(kNobody) == 0;
     }},
};
constexpr char kRaceReason[] = "race";  // in a test of its own

TEST(ReasonsTest, EveryReasonHasAWayToComeAboutAndTheManualListsThemAndNoOther) {
  std::set<std::string> made;
  for (const ReasonRow& row : kReasons) made.insert(row.reason);
  made.insert(kRaceReason);
  std::set<std::string> all;
  for (uint8_t i = 1; !Name(static_cast<mounts::Reason>(i)).empty(); ++i)
    all.insert(std::string(Name(static_cast<mounts::Reason>(i))));
  EXPECT_EQ(made, all);
  std::ifstream manual(TASKCELL_MANUAL);
  const std::string page{std::istreambuf_iterator<char>(manual), {}};
  const std::size_t from = page.find("\nWhy it is skipped:\n");
  ASSERT_NE(from, page.npos);
  std::set<std::string> listed;
  for (std::string_view line :
       Split(std::string_view(page).substr(from, page.find("\nelse empty", from) - from), '\n')) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words[0] == ".Dq") listed.insert(std::string(words[1]));
  }
  EXPECT_EQ(listed, all);
}

// No rename comes in between every time it is tried: here the kernel says that one did (EAGAIN).
TEST_F(RaceReasonTest, ComesAboutWhereANameIsNeverTheSameTwice) {
  std::ofstream(At("tree/SOUL.md")) << "x";
  EXPECT_EQ(test::InChild([this] {
              const UniqueFd tree = sys::Open(At("tree"), O_RDONLY | O_DIRECTORY).value();
              if (!test::InstallFaults({{SYS_openat2, EAGAIN}})) return 90;
              Result<mounts::Finding> soul =
                  mounts::Judge(tree.get(), "SOUL.md", cell::EntryKind::kFile);
              return soul.ok() && soul->reason == mounts::Reason::kRace ? 0 : 1;
            }),
            0);
}

TEST_P(ReasonTest, ComesAbout) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  EXPECT_EQ(test::InChild([this] {
              if (!test::EnterOwnMounts()) return 90;
              if (!GetParam().spoil(At("tree/SOUL.md"))) return 91;
              return test::WaitFor([this] { return ReasonOfSoul() == GetParam().reason; }) ? 0 : 1;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Each, ReasonTest, testing::ValuesIn(kReasons),
                         [](const auto& row) { return std::string(row.param.reason); });

}  // namespace
}  // namespace taskcell::probe::audit
