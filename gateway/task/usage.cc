#include "gateway/task/usage.h"

#include <algorithm>
#include <limits>

#include "gateway/egress/request_cost.h"
#include "launcher/base/json_text.h"

namespace taskcell::gateway {
namespace {

void Raise(uint64_t& sum, uint64_t by) {
  sum = by > std::numeric_limits<uint64_t>::max() - sum ? std::numeric_limits<uint64_t>::max()
                                                        : sum + by;
}

}  // namespace

TaskUsage UsageOf(const EgressRecord& record, const Prices& prices, std::string_view provider) {
  TaskUsage usage;
  for (const EgressRequest& request : record.requests) {
    const std::optional<RequestCost> cost = CostOf(request, prices, provider);
    if (!cost.has_value()) continue;
    ++usage.model_calls;
    if (cost->is_estimate) ++usage.estimated_calls;
    if (!cost->microcents.has_value()) ++usage.unpriced_calls;
    Raise(usage.input_tokens, std::min(cost->tokens.input, kMaxTokens));
    Raise(usage.cached_tokens, std::min(cost->tokens.cached, kMaxTokens));
    Raise(usage.cache_write_tokens, std::min(cost->tokens.written, kMaxTokens));
    Raise(usage.output_tokens, std::min(cost->tokens.output, kMaxTokens));
    Raise(usage.microcents, cost->microcents.value_or(0));
  }
  usage.requests = record.totals.requests + record.totals.tunnels;
  usage.refused = record.totals.refused + record.totals.tunnels_refused;
  usage.bytes_up = record.totals.bytes_up;
  usage.bytes_down = record.totals.bytes_down;
  return usage;
}

void Add(const TaskUsage& run, TaskUsage& sum) {
  sum.is_known = sum.is_known && run.is_known;
  for (uint64_t TaskUsage::*part :
       {&TaskUsage::model_calls, &TaskUsage::estimated_calls, &TaskUsage::unpriced_calls,
        &TaskUsage::input_tokens, &TaskUsage::cached_tokens, &TaskUsage::cache_write_tokens,
        &TaskUsage::output_tokens, &TaskUsage::microcents, &TaskUsage::requests,
        &TaskUsage::refused, &TaskUsage::bytes_up, &TaskUsage::bytes_down})
    Raise(sum.*part, run.*part);
}

std::string UsageJson(const TaskUsage& usage) {
  JsonText json;
  json.Open('{').Key("known").Bool(usage.is_known);
  json.Key("model_calls").Unsigned(usage.model_calls);
  json.Key("estimated_calls").Unsigned(usage.estimated_calls);
  json.Key("unpriced_calls").Unsigned(usage.unpriced_calls);
  json.Key("input_tokens").Unsigned(usage.input_tokens);
  json.Key("cached_tokens").Unsigned(usage.cached_tokens);
  json.Key("cache_write_tokens").Unsigned(usage.cache_write_tokens);
  json.Key("output_tokens").Unsigned(usage.output_tokens);
  json.Key("cost_microcents").Unsigned(usage.microcents).Close('}');
  return json.text();
}

}  // namespace taskcell::gateway
