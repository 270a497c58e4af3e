#include <fcntl.h>
#include <gtest/gtest.h>

#include <limits>

#include "gateway/ledger/ledger.h"
#include "gateway/ledger/month.h"
#include "launcher/sys/file.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

TEST(MonthTest, IsTheCalendarsInUtcAndTheNextBeginsAtItsFirstSecond) {
  EXPECT_EQ(MonthOf(0), "1970-01");
  EXPECT_EQ(MonthOf(1798761599), "2026-12");
  EXPECT_EQ(NextMonth(1798761599), 1798761600) << "the first second of 2027";
  EXPECT_EQ(MonthOf(1798761600), "2027-01");
  EXPECT_EQ(NextMonth(0), int64_t{31} * 86400);
}

TEST(SpendingTest, SumsByAccountAndMonthAndStaysAtWhatFits) {
  test::TempDirectory directory("spending");
  UniqueFd home = sys::Open(directory.path(), O_RDONLY | O_DIRECTORY).value();
  Ledger ledger = Ledger::Open(home.get(), directory.path()).value();
  ASSERT_TRUE(ledger.AddSpending("2026-12", {"a", 5, 0}).ok());
  ASSERT_TRUE(ledger.AddSpending("2026-12", {"a", 7, 1}).ok());
  ASSERT_TRUE(ledger.AddSpending("2027-01", {"a", 1, 0}).ok());
  ASSERT_TRUE(ledger.AddSpending("2026-12", {"b", std::numeric_limits<int64_t>::max(), 0}).ok());
  ASSERT_TRUE(ledger.AddSpending("2026-12", {"b", 9, 0}).ok());
  const std::vector<Spending> december = ledger.SpendingIn("2026-12").value();
  ASSERT_EQ(december.size(), 2U);
  EXPECT_EQ(december[0].account, "a");
  EXPECT_EQ(december[0].microcents, 12);
  EXPECT_EQ(december[0].unpriced_calls, 1);
  EXPECT_EQ(december[1].microcents, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ledger.SpendingIn("2027-01").value().at(0).microcents, 1);
}

}  // namespace
}  // namespace taskcell::gateway
