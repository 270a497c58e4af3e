#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gateway/config/accounts.h"
#include "gateway/config/rotation.h"
#include "gateway/ledger/account_state.h"
#include "gateway/task/verdict.h"

namespace taskcell::gateway {

// Puts accounts that fit (in their order of priority) into the order in which they are to be tried,
// without those that are cooling down at `now` (unix seconds); at least one. Error code no_account
// when all are, naming each with its reason and when it may be used again. Pure.
Result<std::vector<Account>> OrderAccounts(const std::vector<Account>& fitting,
                                           const std::vector<AccountState>& states,
                                           RotationStrategy strategy, int64_t now);

// What a run says about the account that paid for it.
struct AccountLesson {
  std::optional<AccountOutcome> outcome;  // nullopt: nothing
  int64_t retry_after_s = 0;              // of a rate limit that named it
  bool may_try_another = false;           // the provider refused the account before any tool ran
};

// Learns from the broker's record, never from what the program printed, but on the host, where the
// stream is all there is. `code` is the verdict's. Pure.
AccountLesson LearnAboutAccount(const Evidence& evidence, std::string_view code);

}  // namespace taskcell::gateway
