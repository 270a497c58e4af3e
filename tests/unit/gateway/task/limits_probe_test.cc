#include "gateway/task/limits_probe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "gateway/ledger/ledger.h"
#include "tests/support/wait_for.h"
#include "tests/unit/gateway/task/run_task_fixture.h"
#include "tests/unit/gateway/task/waiting_cell.h"

namespace taskcell::gateway {
namespace {

// A rootless engine whose check cells attest to `attested_`'s changes.
class LimitsProbeTest : public RunTaskTest {
 protected:
  void SetUp() override {
    RunTaskTest::SetUp();
    state_.rootless = true;
    surroundings_.environment.clear();  // no account: an admitted task ends right after the probe
    state_.make_cell = [this](const cell::CellPlan& plan) {
      ++cells_;
      entered_ = Runs();
      sys::SocketPair pair = sys::MakePacketPair().value();
      first_process_ = std::move(pair.first);
      cell::CellPlan attested = plan;
      if (deviate_) deviate_(attested);
      if (attests_) {
        Attest(attested, first_process_.get());
      } else if (!silent_) {
        first_process_.Reset();
      }
      return std::make_unique<WaitingCell>(plan, std::move(pair.second), [] {});
    };
  }

  // The runs of the ledger that have no end.
  std::vector<RunRow> Runs() const {
    const Home home = OpenHome(path_).value();
    return Ledger::Open(home.fd.get(), home.path).value().UnendedRuns().value();
  }

  std::vector<RunRow> entered_;  // when the last check cell was made
  std::function<void(cell::CellPlan&)> deviate_;
  bool attests_ = true;
  bool silent_ = false;  // neither attests nor leaves
  std::atomic<int> cells_ = 0;
  UniqueFd first_process_;
};

TEST_F(LimitsProbeTest, APassIsKeptForTheEngineAndTheCheckCellHoldsNothingOfTheTask) {
  ExpectRefused("no_account", "an Anthropic API key");
  EXPECT_EQ(cells_, 1);
  EXPECT_EQ(state_.plan->agent, "limits-probe");
  EXPECT_TRUE(state_.plan->mounts.empty());
  EXPECT_EQ(state_.plan->limits.memory_bytes, 4294967296U);
  EXPECT_EQ(state_.plan->limits.pids, 128U);
  ExpectRefused("no_account", "an Anthropic API key");
  EXPECT_EQ(cells_, 1);
  state_.identity = "another engine at the same place";
  ExpectRefused("no_account", "an Anthropic API key");
  EXPECT_EQ(cells_, 2);
}

// So that a sweep takes what a gateway leaves that is killed meanwhile: it knows no other run.
TEST_F(LimitsProbeTest, TheCheckCellIsInTheLedgerFromBeforeItIsMadeUntilItIsGone) {
  ExpectRefused("no_account", "an Anthropic API key");
  ASSERT_EQ(entered_.size(), 1U);
  EXPECT_EQ(entered_[0].id, state_.plan->run_id);
  EXPECT_EQ(entered_[0].engine, "fake");
  EXPECT_TRUE(Runs().empty());
  state_.identity = "where there may be one";
  state_.make_error = Error(Kind::kSystem, "no answer").Coded("docker_unreachable");
  ExpectRefused("docker_unreachable", "[no answer]");
  ASSERT_EQ(Runs().size(), 1U);
  EXPECT_EQ(Runs()[0].id, state_.plan->run_id);
  state_.make_error = Error(Kind::kSystem, "no").Coded("image_missing");
  ExpectRefused("image_missing", "no");
  EXPECT_EQ(Runs().size(), 1U) << "a clear refusal leaves none";
}

TEST_F(LimitsProbeTest, LimitsThatAreNotInForceAreARefusalThatIsTriedAgain) {
  deviate_ = [](cell::CellPlan& plan) { plan.limits.memory_bytes *= 2; };
  ExpectRefused("resource_limits_unenforced", "does not enforce limits (");
  EXPECT_NE(Run().message.find("memory"), std::string::npos);
  EXPECT_EQ(cells_, 2) << "a failure is not kept";
  deviate_ = nullptr;
  ExpectRefused("no_account", "an Anthropic API key");
}

TEST_F(LimitsProbeTest, ACheckCellThatDoesNotAttestIsARefusal) {
  attests_ = false;
  ExpectRefused("resource_limits_unenforced", "did not finish");
}

// The one that waits for the other's probe to end, and the one whose check cell says nothing.
TEST_F(LimitsProbeTest, ACancelEndsTheProbeAndTheWaitForAnothersProbeAtOnce) {
  attests_ = false;
  silent_ = true;
  const Home home = OpenHome(path_).value();
  const SandboxSettings settings = DefaultSandboxSettings();
  FakeEngine engine(state_);
  sys::Pipe first = sys::MakePipe().value();
  sys::Pipe second = sys::MakePipe().value();
  const auto begun = std::chrono::steady_clock::now();
  auto check = [&](const sys::Pipe& pipe) {
    Status checked =
        limits_probe_.Check(home, engine, settings, surroundings_.programs, pipe.read_end.get());
    return checked.ok() ? std::string("passed") : std::string(checked.error().code);
  };
  std::string first_code;
  std::thread probing([&] { first_code = check(first); });
  EXPECT_TRUE(test::WaitFor([&] { return cells_.load() == 1; }));
  second.write_end.Reset();
  EXPECT_EQ(check(second), "stopped");
  EXPECT_EQ(cells_, 1) << "control: it waited for the other one";
  first.write_end.Reset();
  probing.join();
  EXPECT_EQ(first_code, "stopped");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
}

TEST_F(LimitsProbeTest, OfTwoAtOnceOneMakesACellAndBothPass) {
  const Home home = OpenHome(path_).value();
  const SandboxSettings settings = DefaultSandboxSettings();
  FakeEngine engine(state_);
  std::atomic<bool> first_makes = false;
  std::atomic<bool> second_asks = false;
  auto make = state_.make_cell;
  state_.make_cell = [&](const cell::CellPlan& plan) {
    first_makes = true;
    EXPECT_TRUE(test::WaitFor([&] { return second_asks.load(); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that it meets this one
    return make(plan);
  };
  Status first = Ok();
  std::thread probing(
      [&] { first = limits_probe_.Check(home, engine, settings, surroundings_.programs); });
  EXPECT_TRUE(test::WaitFor([&] { return first_makes.load(); }));
  std::thread waiting([&] {
    second_asks = true;
    Status second = limits_probe_.Check(home, engine, settings, surroundings_.programs);
    EXPECT_TRUE(second.ok()) << second.error().text;
  });
  probing.join();
  waiting.join();
  EXPECT_TRUE(first.ok()) << first.error().text;
  EXPECT_EQ(cells_, 1);
}

TEST_F(LimitsProbeTest, ARootfulEngineIsNotProbed) {
  state_.rootless = false;
  ExpectRefused("no_account", "an Anthropic API key");
  EXPECT_EQ(cells_, 0);
}

// What the engine answers to the making of the check cell, and what that means.
struct MakeFault {
  Error error;
  const char* code;
  const char* part;
};

TEST_F(LimitsProbeTest, EachFaultOfTheCheckCellHasItsOwnTextAndCode) {
  const MakeFault faults[] = {
      {Error(Kind::kUnsupported, "other limits than asked").Coded("resource_limits_unenforced"),
       "resource_limits_unenforced", "other limits than asked; delegate the memory"},
      {Error(Kind::kViolation, "it ended").Coded("cell_mismatch"), "resource_limits_unenforced",
       "did not finish: it ended; delegate"},
      {Error(Kind::kViolation, "nobody came", ETIMEDOUT).Coded("cell_mismatch"),
       "docker_unreachable",
       "can't share a socket with this host: its container runs, but the first process never came "
       "to "
       "the gate (fake; nobody came)"},
      {Error(Kind::kConfig, "no such image").Coded("image_missing"), "image_missing",
       "no such image"},
      {Error(Kind::kConfig, "gone").Coded("docker_unreachable"), "docker_unreachable", "gone"}};
  for (const MakeFault& fault : faults) {
    state_.make_error = fault.error;
    ExpectRefused(fault.code, fault.part);
  }
}

}  // namespace
}  // namespace taskcell::gateway
