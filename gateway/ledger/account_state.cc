#include "gateway/ledger/account_state.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr int64_t kDay = int64_t{24} * 3600;
constexpr int64_t kFirstAuthBackoff = int64_t{15} * 60;
constexpr int64_t kLongestAuthBackoff = int64_t{6} * 3600;
constexpr int64_t kTolerableErrors = 2;

int64_t AuthBackoff(int64_t failures) {
  int64_t backoff = kFirstAuthBackoff;
  for (int64_t i = 1; i < failures && backoff < kLongestAuthBackoff; ++i) backoff *= 2;
  return std::min(backoff, kLongestAuthBackoff);
}

void Cool(AccountState& state, int64_t until, std::string because) {
  state.cooling_until = until;
  state.cooling_because = std::move(because);
}

}  // namespace

bool IsResting(const AccountState& state, int64_t now) {
  return state.last_used <= now && now < state.cooling_until;
}

void Advance(AccountState& state, AccountOutcome outcome, int64_t now, int64_t retry_after_s,
             int64_t rate_limit_cooldown_s) {
  state.last_used = now;
  switch (outcome) {
    case AccountOutcome::kSuccess:
      state.errors = 0;
      state.auth_failures = 0;
      Cool(state, 0, "");
      return;
    case AccountOutcome::kRateLimited:
      return Cool(state,
                  now + (retry_after_s > 0 ? std::min(retry_after_s, kDay) : rate_limit_cooldown_s),
                  "rate limit");
    case AccountOutcome::kBilling:
      return Cool(state, now + kDay, "billing");
    case AccountOutcome::kAuthFailed:
      ++state.auth_failures;
      return Cool(state, now + AuthBackoff(state.auth_failures), "authentication failed");
    case AccountOutcome::kError:
      ++state.errors;
      if (state.errors > kTolerableErrors)
        Cool(state, now + rate_limit_cooldown_s, Text(state.errors, " errors in a row"));
      return;
  }
}

}  // namespace taskcell::gateway
