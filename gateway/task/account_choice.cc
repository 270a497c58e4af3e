#include "gateway/task/account_choice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "gateway/ledger/audit.h"
#include "gateway/ledger/month.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr uint64_t kMicrocentsPerCent = 1'000'000;

AccountState StateOf(const Account& account, const std::vector<AccountState>& states) {
  const std::string fingerprint = account.Fingerprint();
  auto found = std::find_if(states.begin(), states.end(), [&](const AccountState& state) {
    return state.id == account.id && state.fingerprint == fingerprint;
  });
  return found == states.end() ? AccountState() : *found;
}

struct Candidate {
  const Account* account;
  AccountState state;
  int64_t spent;
};

// Whether `a` is to be tried before `b`, where both have the same priority.
bool Before(RotationStrategy strategy, const Candidate& a, const Candidate& b) {
  switch (strategy) {
    case RotationStrategy::kPriority:
      return false;  // they stand in order already
    case RotationStrategy::kLeastCost:
      if (a.account->type != b.account->type) return a.account->type == AccountType::kOauth;
      if (a.spent != b.spent) return a.spent < b.spent;
      return a.state.last_used < b.state.last_used;
    case RotationStrategy::kRoundRobin:
      return a.state.last_used < b.state.last_used;
  }
  return false;
}

// The provider refused for a rate limit or quota and answered nothing, and the run was ended before
// that could be its verdict.
bool EndedWhileRefused(const EgressTotals& totals, std::string_view code) {
  constexpr std::array<std::string_view, 4> kEnds = {"timeout", "stopped", "step_limit",
                                                     "output_overflow"};
  return totals.model_calls == 0 && (totals.rate_limited > 0 || totals.billing > 0) &&
         std::find(kEnds.begin(), kEnds.end(), code) != kEnds.end();
}

}  // namespace

int64_t SpentBy(std::string_view account, const std::vector<Spending>& spending) {
  for (const Spending& known : spending)
    if (known.account == account) return known.microcents;
  return 0;
}

std::optional<Pause> PauseOf(const Account& account, const AccountHistory& history, int64_t now) {
  const AccountState state = StateOf(account, history.states);
  if (IsResting(state, now)) return Pause{state.cooling_because, state.cooling_until};
  if (!account.budget_cents.has_value()) return std::nullopt;
  const auto spent_cents =
      static_cast<uint64_t>(SpentBy(account.id, history.spending)) / kMicrocentsPerCent;
  if (spent_cents < *account.budget_cents) return std::nullopt;
  return Pause{
      Text("its monthly_budget_cents (", *account.budget_cents, ") is spent (", spent_cents, ")"),
      NextMonth(now)};
}

Result<AccountHistory> ReadAccountHistory(const Home& home, int64_t now) {
  AccountHistory history;
  std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home.fd.get(), home.path));
  if (!ledger.has_value()) return history;
  history.states = TRY(ledger->Accounts());
  history.spending = TRY(ledger->SpendingIn(MonthOf(now)));
  history.ledger = std::move(ledger);
  return history;
}

Result<std::vector<Account>> OrderAccounts(const std::vector<Account>& fitting,
                                           const AccountHistory& history, RotationStrategy strategy,
                                           int64_t now) {
  constexpr int kMaxNamed = 4;
  std::vector<Candidate> ready;
  std::string waiting;
  int named = 0;
  for (const Account& account : fitting) {
    const std::optional<Pause> pause = PauseOf(account, history, now);
    if (!pause.has_value()) {
      ready.push_back(
          {&account, StateOf(account, history.states), SpentBy(account.id, history.spending)});
    } else if (named++ < kMaxNamed) {
      waiting +=
          Text(waiting.empty() ? "" : "; ", "account `", Printable(account.id), "`: ", pause->why,
               ", until ", Rfc3339(MomentOf(std::chrono::seconds(pause->until_s))));
    }
  }
  if (ready.empty())
    return Error(Kind::kConfig,
                 Text("every account that fits is cooling down or has spent its budget (", waiting,
                      "); wait, add another account, or mend the one named"))
        .Coded("no_account");
  std::stable_sort(ready.begin(), ready.end(),
                   [&](const Candidate& a, const Candidate& b) { return Before(strategy, a, b); });
  std::vector<Account> order;
  order.reserve(ready.size());
  for (const Candidate& candidate : ready) {
    order.push_back(*candidate.account);
    if (order.back().login.has_value())
      order.back().login->refused = candidate.state.auth_failures > 0;
  }
  return order;
}

AccountLesson LearnAboutAccount(const Evidence& evidence, std::string_view code) {
  const EgressTotals& totals = evidence.egress.totals;
  AccountLesson lesson;
  if (code == "auth_failed") {
    lesson.outcome = AccountOutcome::kAuthFailed;
  } else if (code == "rate_limited" || EndedWhileRefused(totals, code)) {
    lesson.outcome = totals.billing > 0 ? AccountOutcome::kBilling : AccountOutcome::kRateLimited;
    lesson.retry_after_s = totals.retry_after_seconds;
  } else if (totals.model_calls > 0 || (IsStreamEvidence(evidence) && code.empty())) {
    lesson.outcome = AccountOutcome::kSuccess;
  } else if (totals.provider_errors > 0) {
    lesson.outcome = AccountOutcome::kError;
  }
  const bool refused = code == "auth_failed" || code == "rate_limited" || code == "budget_spent";
  const bool used_tool =
      totals.tool_calls > 0 || (IsStreamEvidence(evidence) && evidence.run.used_tool);
  lesson.may_try_another = refused && !used_tool;
  return lesson;
}

}  // namespace taskcell::gateway
