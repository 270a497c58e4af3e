#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gateway/config/prices.h"

namespace taskcell::gateway {

// What one account may pay in one month, for all cells of this process whose requests it pays.
// Amounts are millionths of a cent. For any thread.
class Purse {
 public:
  // The budget as it is configured now, and what the account is known to have paid at least.
  void Know(uint64_t budget, uint64_t paid);
  // Holds back what a request may cost that is about to be made: `at_least`, or what the dearest
  // one did until now. nullopt, and nothing is held: nothing is left beside what others hold.
  // Without this all that are under way at one time could be one too many.
  std::optional<uint64_t> Hold(uint64_t at_least);
  // The request has ended, and cost `amount`; what Hold returned for it is free again.
  void Pay(uint64_t held, uint64_t amount);

 private:
  std::mutex mutex_;
  uint64_t budget_ = 0;
  uint64_t paid_ = 0;
  uint64_t held_ = 0;
  uint64_t dearest_ = 0;
};

// The purses that cells pay from. For any thread.
class Purses {
 public:
  // The one of that name, as long as somebody has it: what others paid from it counts.
  std::shared_ptr<Purse> Open(const std::string& name);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Purse>> purses_;
};

// What a cell's requests cost and who pays; without a purse nobody asks.
struct Payment {
  std::shared_ptr<Purse> purse;
  Prices prices;
};

}  // namespace taskcell::gateway
