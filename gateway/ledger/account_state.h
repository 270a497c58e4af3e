#pragma once

#include <cstdint>
#include <string>

namespace taskcell::gateway {

// How a run ended, as far as it tells something about the account that paid for it.
enum class AccountOutcome : uint8_t { kSuccess, kError, kRateLimited, kBilling, kAuthFailed };

// What earlier runs taught about one account. Times are unix seconds; 0: never.
struct AccountState {
  std::string id;
  std::string fingerprint;      // of the secret all this was learnt with: another one starts afresh
  int64_t cooling_until = 0;    // not to be used before
  std::string cooling_because;  // "rate limit", "billing", "authentication failed", "3 errors"
  int64_t errors = 0;           // in a row
  int64_t auth_failures = 0;    // in a row
  int64_t last_used = 0;
};

// Whether an account is not to be used now. A clock that stands before what it learnt last was set
// back since: how long it would rest is then anybody's guess, so it does not.
bool IsResting(const AccountState& state, int64_t now);

// What an outcome makes of the state (compatibility facts 3.2): a success clears everything; a rate
// limit cools for `rate_limit_cooldown_s`, or as long as the provider asked (`retry_after_s`, 0: it
// did not; at most a day); billing for a day; a failed authentication for 15 min, doubling with
// each further one up to 6 h; three other errors in a row like a rate limit. Pure.
void Advance(AccountState& state, AccountOutcome outcome, int64_t now, int64_t retry_after_s,
             int64_t rate_limit_cooldown_s);

}  // namespace taskcell::gateway
