#pragma once

#include <string>
#include <vector>

#include "gateway/config/accounts.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// What a runtime needs.
struct AccountWish {
  std::string family;             // for the message: "claude", "codex", "openai-compat"
  std::string provider;           // "anthropic", "openai", ...
  bool oauth_token = false;       // an OAuth account's token will do (claude)
  std::vector<std::string> pool;  // [model] account_pool; empty: any account
  bool document = false;          // an OAuth account's credential document will do (claude, codex)
};

// The usable accounts that fit, in order; at least one. With a pool only accounts named in it (by
// id, label or tag, ASCII case ignored) are looked at: it is never widened. Error code no_account;
// the text says what kind is needed and why each candidate was passed over. Pure.
Result<std::vector<Account>> FittingAccounts(const std::vector<Account>& accounts,
                                             const AccountWish& wish);

}  // namespace taskcell::gateway
