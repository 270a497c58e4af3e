// The limits of native cells on this host, broken for real; and an engine that lies about them.
#include "probe/live/live.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/signals.h"
#include "probe/cells/native_engine.h"
#include "probe/live/print.h"
#include "tests/support/as_test_user.h"
#include "tests/support/break_limits.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

using live::Report;
using live::Row;
using live::Verdict;

[[maybe_unused]] const auto* const kAsTestUser =
    testing::AddGlobalTestEnvironment(new AsTestUser({}));  // NOLINT: gtest owns it

// Makes cells of another plan than asked, and says that they are as asked.
class LyingEngine : public probe::CellEngine {
 public:
  explicit LyingEngine(void (*change)(cell::CellPlan& plan)) : change_(change) {}

  cell::Engine kind() const override { return real_.kind(); }
  std::string Name() const override { return "a liar"; }
  Status CheckReachable() override { return Ok(); }
  Result<probe::ImageFacts> CheckImage(const std::string& image) override {
    return real_.CheckImage(image);
  }
  Result<probe::CellIds> ChooseIds(const std::string& run_id) override {
    return real_.ChooseIds(run_id);
  }
  Result<std::unique_ptr<probe::RunningCell>> Make(cell::CellPlan plan,
                                                   const probe::CellPlaces& places) override;

 private:
  void (*change_)(cell::CellPlan& plan);
  probe::NativeEngine real_;
};

class LyingCell : public probe::RunningCell {
 public:
  LyingCell(std::unique_ptr<probe::RunningCell> real, cell::CellPlan told)
      : real_(std::move(real)), told_(std::move(told)) {}

  const cell::CellPlan& plan() const override { return told_; }
  pid_t host_pid() const override { return real_->host_pid(); }
  const std::vector<std::string>& warnings() const override { return real_->warnings(); }
  UniqueFd TakeGate() override { return real_->TakeGate(); }
  Result<cell::OutsideAttestation> Observe() override { return real_->Observe(); }
  Result<cgroup::Events> ReadEvents() override { return real_->ReadEvents(); }
  Status Kill() override { return real_->Kill(); }
  Status Remove() override { return real_->Remove(); }
  Result<std::optional<probe::ReportedLimits>> Reported() override {
    probe::ReportedLimits limits;
    limits.memory_bytes = limits.memory_and_swap_bytes = told_.limits.memory_bytes;
    limits.pids = told_.limits.pids;
    limits.cpu_millis = told_.limits.cpu_millis;
    limits.nofile = told_.limits.nofile;
    for (const cell::PlannedTmpfs& tmpfs : told_.tmpfs)
      limits.tmpfs_bytes.emplace(tmpfs.target, tmpfs.size_bytes);
    return std::optional(limits);
  }

 private:
  std::unique_ptr<probe::RunningCell> real_;
  cell::CellPlan told_;
};

Result<std::unique_ptr<probe::RunningCell>> LyingEngine::Make(cell::CellPlan plan,
                                                              const probe::CellPlaces& places) {
  cell::CellPlan told = plan;
  change_(plan);
  std::unique_ptr<probe::RunningCell> real = TRY(real_.Make(std::move(plan), places));
  return std::unique_ptr<probe::RunningCell>(
      std::make_unique<LyingCell>(std::move(real), std::move(told)));
}

class LiveTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(!AsTestUser::directory().empty(),
                     "needs the user taskcell-test (tests/support/fixture.sh up)");
    setting_.places.launch_program = Program("taskcell-launch");
    std::string breaker = Program("taskcell-breaker");
    TASKCELL_REQUIRE(::access(breaker.c_str(), X_OK) == 0,
                     "needs the programs where the test user can execute them");
    pin_ = UniqueFd(::open(breaker.c_str(), O_PATH | O_CLOEXEC));
    struct stat status;
    ASSERT_EQ(::fstat(pin_.get(), &status), 0);
    setting_.mounts = {{breaker, live::kBreakerInside, cell::EntryKind::kFile, status.st_dev,
                        status.st_ino, false}};
    setting_.uid = setting_.gid = 1000;
  }

  live::Asked asked_;
  live::Setting setting_;
  UniqueFd pin_;
};

TEST_F(LiveTest, EveryLimitOfANativeCellHolds) {
  probe::NativeEngine engine;
  Report report = BreakLimits(engine, setting_, asked_);
  std::string text = ReportText(report, false);
  EXPECT_FALSE(report.refusal.has_value()) << text;
  EXPECT_TRUE(report.differences.empty()) << text;
  EXPECT_EQ(report.rows.size(), 9U) << text;
  EXPECT_EQ(Rest(report), std::set<std::string>{}) << text;
  EXPECT_EQ(Overall(report), Verdict::kHeld);
  for (const Row& row : report.rows) {
    if (row.limit == "output" || row.limit == "deadline") continue;
    EXPECT_EQ(row.evidence.seen, row.evidence.asked) << row.limit;
  }
}

struct Lie {
  const char* name;
  void (*change)(cell::CellPlan& plan);
  std::set<std::string> rest;
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

class LieTest : public LiveTest, public testing::WithParamInterface<Lie> {};

TEST_P(LieTest, IsCaughtByTheLimitItIsAbout) {
  LyingEngine engine(GetParam().change);
  Report report = BreakLimits(engine, setting_, asked_);
  EXPECT_EQ(Rest(report), GetParam().rest) << ReportText(report, false);
  EXPECT_EQ(Overall(report), Verdict::kNotHeld);
}

INSTANTIATE_TEST_SUITE_P(
    OfAnEngine, LieTest,
    testing::Values(Lie{"Memory",
                        [](cell::CellPlan& plan) { plan.limits.memory_bytes *= 4; },
                        {"memory:not_held", "memory:lie", "swap:unknown"}},
                    Lie{"Pids",
                        [](cell::CellPlan& plan) { plan.limits.pids *= 4; },
                        {"pids:not_held", "pids:lie"}},
                    Lie{"FewerPids",
                        [](cell::CellPlan& plan) { plan.limits.pids /= 2; },
                        {"pids:not_held", "pids:lie"}},
                    Lie{"Cpu",
                        [](cell::CellPlan& plan) { plan.limits.cpu_millis *= 4; },
                        {"cpu:not_held", "cpu:lie"}},
                    Lie{"Tmpfs",
                        [](cell::CellPlan& plan) { plan.tmpfs[0].size_bytes *= 2; },
                        {"tmpfs:/tmp:not_held", "tmpfs:/tmp:lie"}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(LiveTest, AProbeThatIsStoppedSaysSoAndLeavesNothing) {
  probe::NativeEngine engine;
  int asked = 0;
  Report report = live::BreakLimits(engine, setting_, asked_, [&asked] { return ++asked > 1; });
  ASSERT_TRUE(report.refusal.has_value());
  EXPECT_EQ(report.refusal->code, "stopped");
  EXPECT_FALSE(report.rows.empty());
  EXPECT_NE(Overall(report), Verdict::kHeld);
}

TEST_F(LiveTest, ALauncherThatIsNotThereTellsNothing) {
  probe::NativeEngine engine;
  setting_.places.launch_program = "/nonexistent";
  Report report = BreakLimits(engine, setting_, asked_);
  ASSERT_TRUE(report.refusal.has_value());
  EXPECT_EQ(Overall(report), Verdict::kUnknown);
}

}  // namespace
}  // namespace taskcell::test
