#include "gateway/task/account_choice.h"

#include <algorithm>
#include <chrono>

#include "gateway/ledger/audit.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

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
};

// Whether `a` is to be tried before `b`, where both have the same priority.
bool Before(RotationStrategy strategy, const Candidate& a, const Candidate& b) {
  switch (strategy) {
    case RotationStrategy::kPriority:
      return false;  // they stand in order already
    case RotationStrategy::kLeastCost:
      if (a.account->type != b.account->type) return a.account->type == AccountType::kOauth;
      return a.state.last_used < b.state.last_used;
    case RotationStrategy::kRoundRobin:
      return a.state.last_used < b.state.last_used;
  }
  return false;
}

}  // namespace

Result<std::vector<Account>> OrderAccounts(const std::vector<Account>& fitting,
                                           const std::vector<AccountState>& states,
                                           RotationStrategy strategy, int64_t now) {
  constexpr int kMaxNamed = 4;
  std::vector<Candidate> ready;
  std::string waiting;
  int named = 0;
  for (const Account& account : fitting) {
    AccountState state = StateOf(account, states);
    if (!IsResting(state, now)) {
      ready.push_back({&account, std::move(state)});
    } else if (named++ < kMaxNamed) {
      waiting += Text(waiting.empty() ? "" : "; ", "account `", Printable(account.id),
                      "`: ", state.cooling_because, ", until ",
                      Rfc3339(MomentOf(std::chrono::seconds(state.cooling_until))));
    }
  }
  if (ready.empty())
    return Error(Kind::kConfig, Text("every account that fits is cooling down (", waiting,
                                     "); wait, add another account, or mend the one named"))
        .Coded("no_account");
  std::stable_sort(ready.begin(), ready.end(),
                   [&](const Candidate& a, const Candidate& b) { return Before(strategy, a, b); });
  std::vector<Account> order;
  order.reserve(ready.size());
  for (const Candidate& candidate : ready) order.push_back(*candidate.account);
  return order;
}

AccountLesson LearnAboutAccount(const Evidence& evidence, std::string_view code) {
  const EgressTotals& totals = evidence.egress.totals;
  AccountLesson lesson;
  if (code == "auth_failed") {
    lesson.outcome = AccountOutcome::kAuthFailed;
  } else if (code == "rate_limited") {
    lesson.outcome = totals.billing > 0 ? AccountOutcome::kBilling : AccountOutcome::kRateLimited;
    lesson.retry_after_s = totals.retry_after_seconds;
  } else if (totals.model_calls > 0 || (IsStreamEvidence(evidence) && code.empty())) {
    lesson.outcome = AccountOutcome::kSuccess;
  } else if (totals.provider_errors > 0) {
    lesson.outcome = AccountOutcome::kError;
  }
  const bool refused = code == "auth_failed" || code == "rate_limited";
  const bool used_tool =
      totals.tool_calls > 0 || (IsStreamEvidence(evidence) && evidence.run.used_tool);
  lesson.may_try_another = refused && !used_tool;
  return lesson;
}

}  // namespace taskcell::gateway
