#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/config/value.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Cents per million tokens, in thousandths of a cent.
struct Price {
  uint64_t input = 0;
  uint64_t output = 0;
  uint64_t cached_input = 0;  // read from the provider's cache; as input where it is not set
  uint64_t cache_write = 0;   // written to it; likewise
};

inline constexpr uint64_t kMaxPriceCents = 1'000'000;
inline constexpr std::size_t kMaxPrices = 1000;

// [taskcell.prices]: what each model costs, by "model" or, where two providers have one of the same
// name, by "provider/model".
class Prices {
 public:
  bool empty() const { return by_model_.empty(); }
  // The price of the model at that provider; nullopt: nobody knows.
  std::optional<Price> Of(std::string_view provider, std::string_view model) const;

 private:
  friend Result<Prices> ReadPrices(const ConfigValue& config);
  std::map<std::string, Price, std::less<>> by_model_;
};

// What so many tokens cost, in millionths of a cent, rounded up. `input` holds `cached` and
// `written`; a count that cannot be true counts as kMaxTokens. Pure.
inline constexpr uint64_t kMaxTokens = 1'000'000'000;
struct TokenCount {
  uint64_t input = 0;
  uint64_t cached = 0;
  uint64_t written = 0;
  uint64_t output = 0;
};
uint64_t CostInMicrocents(const Price& price, const TokenCount& tokens);

// Reads the table from a parsed config.toml: a table for each model, with `input` and `output`, if
// wanted also `cached_input` and `cache_write`, each a number of at least 0. kConfig for anything
// else. Pure.
Result<Prices> ReadPrices(const ConfigValue& config);

}  // namespace taskcell::gateway
