#include "gateway/task/budget.h"

#include "gateway/config/toml_document.h"
#include "tests/unit/gateway/task/run_task_fixture.h"

namespace taskcell::gateway {
namespace {

constexpr uint64_t kBudgetCents = 20;
constexpr uint64_t kBudget = kBudgetCents * 1'000'000;

class BudgetTest : public RunTaskTest {
 protected:
  void SetUp() override {
    RunTaskTest::SetUp();
    if (HasFatalFailure()) return;
    broker_ = Broker::Start().value();
    surroundings_.broker = [this]() -> Result<Broker*> { return broker_.get(); };
    admission_.own_settings.prices =
        ReadPrices(ParseToml("[taskcell.prices.m]\ninput = 1\noutput = 1\n", "c").value()).value();
    home_ = OpenHome(path_).value();
    record_ = TaskRecord::Begin(*home_, "a1", {path_, "a1", "do it"}, std::nullopt).value();
    payer_.account = "one";
    payer_.budget_cents = kBudgetCents;
  }
  std::shared_ptr<Purse> Hold() {
    return HoldToBudget(*home_, admission_, surroundings_, *record_, payer_).value();
  }
  static bool IsSpent(const std::shared_ptr<Purse>& purse) { return !purse->Hold(0).has_value(); }
  void EnterCost() {
    TaskUsage usage;
    usage.model_calls = 1;
    usage.microcents = kBudget;
    std::vector<std::string> warnings;
    record_->Pay("one", usage, warnings);
    EXPECT_TRUE(warnings.empty());
  }

  std::unique_ptr<Broker> broker_;
  std::optional<Home> home_;
  std::optional<TaskRecord> record_;
  Admission admission_;
  Payer payer_;
};

TEST_F(BudgetTest, WhatWasPaidBeforeCounts) {
  EXPECT_FALSE(IsSpent(Hold()));
  EnterCost();
  EXPECT_TRUE(IsSpent(Hold()));
}

TEST_F(BudgetTest, WhatACellPaidCountsAfterItUntilTheLedgerHasIt) {
  std::shared_ptr<Purse> held = Hold();
  held->Pay(0, kBudget);
  payer_.route = Route();  // the cell has gone, and its way with it
  EXPECT_TRUE(IsSpent(Hold()));
  payer_.route = Route();
  EnterCost();
  held.reset();
  EXPECT_TRUE(IsSpent(Hold()));
}

// Another task ends in between: its cost is in the ledger then, and nobody holds the purse any
// more.
TEST_F(BudgetTest, ThePurseIsOpenedBeforeTheLedgerIsRead) {
  surroundings_.broker = [this]() -> Result<Broker*> {
    EnterCost();
    return broker_.get();
  };
  EXPECT_TRUE(IsSpent(Hold()));
}

TEST_F(BudgetTest, WithoutABudgetOrAPriceNobodyAsks) {
  payer_.budget_cents.reset();
  EXPECT_EQ(Hold(), nullptr);
  payer_.budget_cents = kBudgetCents;
  admission_.own_settings.prices = Prices();
  EXPECT_EQ(Hold(), nullptr);
  EXPECT_EQ(payer_.route.payment.purse, nullptr);
}

}  // namespace
}  // namespace taskcell::gateway
