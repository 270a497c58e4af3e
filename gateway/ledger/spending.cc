// What accounts paid, by month.
#include <array>
#include <cstdio>
#include <ctime>

#include "gateway/ledger/ledger.h"
#include "gateway/ledger/month.h"

namespace taskcell::gateway {
namespace {

struct tm PartsOf(int64_t now_s) {
  const std::time_t seconds = now_s;
  struct tm parts = {};
  ::gmtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

std::string MonthOf(int64_t now_s) {
  constexpr int kFirstYear = 1900;
  const struct tm parts = PartsOf(now_s);
  std::array<char, 32> text;
  const int length = std::snprintf(text.data(), text.size(), "%04d-%02d",
                                   parts.tm_year + kFirstYear, parts.tm_mon + 1);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

int64_t NextMonth(int64_t now_s) {
  struct tm first = PartsOf(now_s);
  first.tm_mon += 1;  // timegm carries into the year
  first.tm_mday = 1;
  first.tm_hour = first.tm_min = first.tm_sec = 0;
  return ::timegm(&first);
}

// A sum that no longer fits stays at what fits: it is above every budget.
Status Ledger::AddSpending(std::string_view month, const Spending& spent) {
  Statement add = TRY(database_.Prepare(
      "INSERT INTO spending (account, month, microcents, unpriced) VALUES (?, ?, ?, ?) "
      "ON CONFLICT (account, month) DO UPDATE SET "
      "microcents = CASE WHEN microcents > 9223372036854775807 - excluded.microcents "
      "THEN 9223372036854775807 ELSE microcents + excluded.microcents END, "
      "unpriced = unpriced + excluded.unpriced"));
  add.Bind(spent.account).Bind(month).Bind(spent.microcents).Bind(spent.unpriced_calls);
  return add.Run().With(kLedgerFile);
}

Result<std::vector<Spending>> Ledger::SpendingIn(std::string_view month) {
  Statement select = TRY(database_.Prepare(
      "SELECT account, microcents, unpriced FROM spending WHERE month = ? ORDER BY account"));
  select.Bind(month);
  std::vector<Spending> all;
  while (TRY(select.Step().With(kLedgerFile)))
    all.push_back({select.Text(0), select.Integer(1), select.Integer(2)});
  return all;
}

}  // namespace taskcell::gateway
