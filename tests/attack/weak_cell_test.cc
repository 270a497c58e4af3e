// The same attacks on a cell that was made weak on purpose: the check can fail. Nothing outside
// comes to harm, since every payload shows access and does no damage.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>

#include "launcher/native/request.h"
#include "launcher/sys/file.h"
#include "probe/attack/attack.h"
#include "probe/cells/native_engine.h"
#include "tests/support/as_test_user.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

using attack::Report;
using attack::Row;
using attack::Verdict;

[[maybe_unused]] const auto* const kAsTestUser = testing::AddGlobalTestEnvironment(
    new AsTestUser({BuiltBeside("../bin/taskcell-attacker"), BuiltBeside("weak/taskcell-init"),
                    BuiltBeside("weak/taskcell-weak-launch-0"),
                    BuiltBeside("weak/taskcell-weak-launch-1")}));  // NOLINT: gtest owns it

// Gives cells four times what is asked, and the directory the attacks look for, writable.
class WeakEngine : public probe::NativeEngine {
 public:
  explicit WeakEngine(std::string shown) : shown_(std::move(shown)) {}

  Result<std::unique_ptr<probe::RunningCell>> Make(cell::CellPlan plan,
                                                   const probe::CellPlaces& places) override {
    constexpr uint64_t kFactor = 4;
    plan.limits.memory_bytes *= kFactor;
    plan.limits.pids *= kFactor;
    plan.limits.cpu_millis *= 2 * kFactor;
    plan.limits.nofile *= kFactor;
    for (cell::PlannedTmpfs& tmpfs : plan.tmpfs) tmpfs.size_bytes *= kFactor;
    UniqueFd fd = TRY(sys::Open(shown_, O_PATH | O_DIRECTORY));
    struct stat info = TRY(sys::Stat(fd.get()));
    plan.mounts.push_back(
        {shown_, shown_, cell::EntryKind::kDirectory, info.st_dev, info.st_ino, true});
    return probe::NativeEngine::Make(std::move(plan), places);
  }

 private:
  std::string shown_;
};

class WeakCellTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(!AsTestUser::directory().empty(),
                     "needs the user taskcell-test (tests/support/fixture.sh up)");
  }

  static Report Attack(const std::string& launcher, const std::vector<std::string>& names) {
    Result<std::string> run_id = native::MakeRunId();
    EXPECT_TRUE(run_id.ok());
    auto world = attack::World::Make(AsTestUser::Copy("taskcell-attacker"), run_id.value());
    if (!world.ok()) {
      ADD_FAILURE() << world.error().text;
      return {};
    }
    std::string program = world->program();
    const std::string shown = program.substr(0, program.rfind('/'));
    EXPECT_EQ(::chmod(shown.c_str(), 0755), 0);  // what a cell may not read it is not given
    WeakEngine engine(shown);
    live::Setting setting;
    setting.uid = setting.gid = live::kInsideId;
    setting.places.launch_program = AsTestUser::Copy(launcher);
    setting.mounts = {world->tools()};
    // Writable, and for everybody: the cell's uid is not the one it belongs to.
    setting.mounts[0].writable = true;
    EXPECT_EQ(::chmod((world->tools().source + "/attacker").c_str(), 0777), 0);
    auto payloads = attack::Choose(names);
    EXPECT_TRUE(payloads.ok());
    Report report =
        attack::Attack(engine, setting, world.value(), payloads.value(), [] { return false; });
    EXPECT_FALSE(report.refusal.has_value()) << report.refusal->text;
    return report;
  }
};

// What holds even here, by what no cell is without: pid namespace, id map, a /dev/shm and a uid of
// its own, targets of mounts that are opened without following links, a tmpfs of a size, and a host
// that ends what is over its bounds.
const std::set<std::string> kHeldAnyway = {
    "uid-0",
    "gid-0",
    "see-process-outside",
    "signal-outside",
    "trace-outside",
    "pin-outside",
    "open-process-outside",
    "read-memory-outside",
    "limits-outside",
    "page-cache-bomb",
    "inotify-bomb",
    "cve-2019-5736-init-program",
    "signal-init",
    "end-init-by-its-own-faults",
    "deadline-deaf",
    "deadline-stop",
    "deadline-session",
    "deadline-vfork",
    "deadline-without-descriptors",
    "cve-2021-30465-mount-target",
    "cve-2021-30465-exchanged-target",
    "cve-2025-52565-root-dev",
    "cve-2025-52881-root-proc",
    "hostile-root-parent-link",
    "hostile-root-relative-link",
    "double-fork",
    "output-bomb",
    "posix-shared-memory",
};

TEST_F(WeakCellTest, AttacksOnItEscape) {
  Report report = Attack("taskcell-weak-launch-0", {});
  Report shared = Attack("taskcell-weak-launch-1", {"ipc", "network"});
  EXPECT_EQ(Overall(report), Verdict::kEscaped);
  std::set<std::string_view> escaped;
  for (const Report* each : {&report, &shared}) {
    for (const Row& row : each->rows)
      if (row.verdict == Verdict::kEscaped) escaped.insert(row.payload->name);
  }
  for (const Row& row : report.rows) {
    bool held = kHeldAnyway.contains(std::string(row.payload->name));
    // An ordinary user cannot even make a cell in which that would work which takes the host's
    // root.
    if (row.outside.result != 0 && !held) continue;
    EXPECT_NE(escaped.contains(row.payload->name), held)
        << row.payload->name << ": " << attack::NameOf(row.inside.result) << " " << row.why;
  }
  EXPECT_GE(escaped.size(), 100U);
}

}  // namespace
}  // namespace taskcell::test
