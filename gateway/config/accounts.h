#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/environment.h"
#include "gateway/config/token_endpoint.h"
#include "gateway/config/value.h"
#include "launcher/base/result.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

enum class AccountType : uint8_t { kApiKey, kOauth };

// What the credential document of an account says beside the token in use.
struct OauthLogin {
  int64_t expires_at = 0;  // unix seconds
  std::string account;     // openai: what requests name beside the token
  std::string file;        // in which a renewed one takes its place
  TokenEndpoint endpoint;
  std::string not_renewed;  // why it can't be renewed; empty: it can
  bool refused = false;     // the provider did not take the token when it was used last

  bool CanBeRenewed() const { return not_renewed.empty(); }
};
// A token that ends within this time is not begun with.
inline constexpr int64_t kTokenSlackSeconds = 60;

// One way to pay a provider. An account without a usable secret stays in the list with the reason,
// so that a refusal can say what is wrong with it.
struct Account {
  std::string id;
  AccountType type = AccountType::kApiKey;
  std::string provider;
  int64_t priority = 0;  // lower wins
  std::string label;
  std::vector<std::string> tags;
  sys::SecretText secret;           // only in this process, never in a log, a receipt or a cell
  std::string unavailable;          // empty: usable; else why not
  std::optional<OauthLogin> login;  // of a credential document, whose access token `secret` is
  // monthly_budget_cents; nullopt: it has none.
  std::optional<uint64_t> budget_cents;

  // Tells one secret from the one that replaced it, and gives neither away.
  std::string Fingerprint() const;
};

inline constexpr std::size_t kMaxAccounts = 1000;
inline constexpr uint64_t kDefaultBudgetCents = 5000;           // of a configured API key
inline constexpr uint64_t kMaxBudgetCents = 1'000'000'000'000;  // a month

// Reads [[accounts]], [api] and the environment's keys (compatibility facts 3.2), by priority, then
// in the file's order. `home_fd` is for .keyfile. kConfig with the code invalid_config when the
// section itself cannot be understood: then there is no account at all. A secret that stands as
// plain text in a file others may read (config.toml, the file of a secret://file reference) makes
// its account unusable, with the chmod that mends it; so does a credential document whose token has
// ended, unless it can be renewed. No provider is asked.
Result<std::vector<Account>> LoadAccounts(const ConfigValue& config, int home_fd,
                                          const Environment& environment);

// As Account::Fingerprint, of an account that now has `secret`.
std::string FingerprintOf(std::string_view id, std::string_view secret);

// Environment variables that hold a provider's key, the first set one wins; empty for a provider
// nobody knows.
std::vector<std::string_view> KeyVariables(std::string_view provider);

}  // namespace taskcell::gateway
