#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/config/environment.h"
#include "gateway/config/home.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// One account as an operator sees it, without its secret.
struct ListedAccount {
  enum class State : uint8_t { kReady, kResting, kUnusable };
  std::string id;
  std::string provider;
  std::string type;  // "api_key" or "oauth"
  int64_t priority = 0;
  State state = State::kReady;
  std::string why;               // it rests or cannot be used
  int64_t until_s = 0;           // unix time a resting one may be used again
  int64_t spent_microcents = 0;  // this month
  std::optional<uint64_t> budget_cents;
};

// All accounts of a home, in the order in which they are tried. Asks no provider. kConfig where
// config.toml or the ledger cannot be read.
Result<std::vector<ListedAccount>> ListAccounts(const Home& home, const Environment& environment,
                                                int64_t now_s);

// The same as a JSON array.
std::string AccountsJson(const std::vector<ListedAccount>& accounts);

std::string_view Name(ListedAccount::State state);  // "ready", "resting", "unusable"

}  // namespace taskcell::gateway
