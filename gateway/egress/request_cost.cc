#include "gateway/egress/request_cost.h"

#include <algorithm>

namespace taskcell::gateway {
namespace {

// The provider bills answers, also one that nobody waited for: else whoever hangs up before its
// head would pay nothing. One that broke the connection off before gave none. It counts tokens of a
// prompt for nothing.
bool IsBilled(const EgressRequest& request) {
  constexpr int kAnswered = 200;
  if (IsTokenCount(request)) return false;
  if (request.upstream_status != 0) return request.upstream_status == kAnswered;
  return request.relayed && request.code != "egress_unreachable" && request.code != "egress_tls";
}

}  // namespace

std::optional<RequestCost> CostOf(const EgressRequest& request, const Prices& prices,
                                  std::string_view provider) {
  if (!IsBilled(request)) return std::nullopt;
  RequestCost cost;
  TokenCount& tokens = cost.tokens;
  tokens = {request.input_tokens, request.cached_tokens, request.cache_write_tokens,
            request.output_tokens};
  cost.is_estimate = tokens.input == 0 || request.finish.empty();
  if (tokens.input == 0) tokens.input = request.bytes_up / kRequestBytesPerToken;
  if (tokens.output == 0 || request.finish.empty())
    tokens.output = std::max(tokens.output, request.bytes_down / kAnswerBytesPerToken);
  const std::optional<Price> price = prices.Of(provider, request.model);
  if (price.has_value()) cost.microcents = CostInMicrocents(*price, tokens);
  return cost;
}

}  // namespace taskcell::gateway
