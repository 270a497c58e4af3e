#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gateway/config/accounts.h"
#include "gateway/config/home.h"
#include "gateway/config/rotation.h"
#include "gateway/ledger/account_state.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/verdict.h"

namespace taskcell::gateway {

// What the ledger knows of a home's accounts.
struct AccountHistory {
  std::vector<AccountState> states;
  std::vector<Spending> spending;     // of this month
  std::optional<Ledger> ledger = {};  // that it was read from, for whoever writes there next
};

// What the account paid this month, in millionths of a cent.
int64_t SpentBy(std::string_view account, const std::vector<Spending>& spending);

// Why the account may not be used at `now` (unix seconds), and until when ("rate limit, until
// ..."): it rests, or its month's budget is spent. Empty: it may. Pure.
struct Pause {
  std::string why;
  int64_t until_s = 0;
};
std::optional<Pause> PauseOf(const Account& account, const AccountHistory& history, int64_t now);

// Puts accounts that fit (in their order of priority) into the order in which they are to be tried,
// without those that may not be used at `now`; at least one. Error code no_account when none may,
// naming each with its reason and when it may be used again. Pure.
Result<std::vector<Account>> OrderAccounts(const std::vector<Account>& fitting,
                                           const AccountHistory& history, RotationStrategy strategy,
                                           int64_t now);

// Nothing where no task of the home ever ran.
Result<AccountHistory> ReadAccountHistory(const Home& home, int64_t now);

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
