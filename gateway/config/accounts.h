#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/environment.h"
#include "gateway/config/value.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

enum class AccountType : uint8_t { kApiKey, kOauth };

// One way to pay a provider. An account without a usable secret stays in the list with the reason,
// so that a refusal can say what is wrong with it.
struct Account {
  std::string id;
  AccountType type = AccountType::kApiKey;
  std::string provider;
  int64_t priority = 0;  // lower wins
  std::string label;
  std::vector<std::string> tags;
  std::string secret;       // only in this process, never in a log, a receipt or a cell
  std::string unavailable;  // empty: usable; else why not

  // Tells one secret from the one that replaced it, and gives neither away.
  std::string Fingerprint() const;
};

inline constexpr std::size_t kMaxAccounts = 1000;

// Reads [[accounts]], [api] and the environment's keys (compatibility facts 3.2), by priority, then
// in the file's order. `home_fd` is for .keyfile. kConfig with the code invalid_config when the
// section itself cannot be understood: then there is no account at all. A secret that stands as
// plain text in a file others may read (config.toml, the file of a secret://file reference) makes
// its account unusable, with the chmod that mends it.
Result<std::vector<Account>> LoadAccounts(const ConfigValue& config, int home_fd,
                                          const Environment& environment);

// What a runtime needs.
struct AccountWish {
  std::string family;             // for the message: "claude", "codex", "openai-compat"
  std::string provider;           // "anthropic", "openai", ...
  bool oauth_token = false;       // an OAuth account's token will do (claude)
  std::vector<std::string> pool;  // [model] account_pool; empty: any account
};

// The usable accounts that fit, in order; at least one. With a pool only accounts named in it (by
// id, label or tag, ASCII case ignored) are looked at: it is never widened. Error code no_account;
// the text says what kind is needed and why each candidate was passed over. Pure.
Result<std::vector<Account>> FittingAccounts(const std::vector<Account>& accounts,
                                             const AccountWish& wish);

// Environment variables that hold a provider's key, the first set one wins; empty for a provider
// nobody knows.
std::vector<std::string_view> KeyVariables(std::string_view provider);

}  // namespace taskcell::gateway
