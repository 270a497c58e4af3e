#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gateway/config/prices.h"
#include "gateway/egress/record.h"

namespace taskcell::gateway {

// Of an answer that was cut off before it told its tokens, and of one that does not tell them: a
// token of a request has so many bytes, one of an answer so many with what frames it.
inline constexpr uint64_t kRequestBytesPerToken = 4;
inline constexpr uint64_t kAnswerBytesPerToken = 16;

// What one request took of its provider.
struct RequestCost {
  TokenCount tokens;
  bool is_estimate = false;            // the answer did not say (all of) what it took
  std::optional<uint64_t> microcents;  // millionths of a cent; nullopt: its model has no price
};

// Weighs a request that has ended. `provider` is whose models they are. nullopt: it is not billed.
// Pure.
std::optional<RequestCost> CostOf(const EgressRequest& request, const Prices& prices,
                                  std::string_view provider);

}  // namespace taskcell::gateway
