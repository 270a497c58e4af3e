#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/config/prices.h"
#include "gateway/egress/record.h"

namespace taskcell::gateway {

// What a run, or all runs of a task, took of a provider, as the broker saw it.
struct TaskUsage {
  bool is_known = true;  // false: a part went through a tunnel that nobody reads
  uint64_t model_calls = 0;
  uint64_t estimated_calls = 0;  // whose answer did not say (all of) what it took
  uint64_t unpriced_calls = 0;   // of a model without a price
  uint64_t input_tokens = 0;     // with the next two
  uint64_t cached_tokens = 0;
  uint64_t cache_write_tokens = 0;
  uint64_t output_tokens = 0;
  uint64_t microcents = 0;  // millionths of a cent, of the calls with a price
  uint64_t requests = 0;    // and tunnels
  uint64_t refused = 0;
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
};

// Weighs a cell's record. `provider` is whose models they are. Pure.
TaskUsage UsageOf(const EgressRecord& record, const Prices& prices, std::string_view provider);

// Adds the usage of another run. Sums stay at what fits.
void Add(const TaskUsage& run, TaskUsage& sum);

// As an object for a receipt.
std::string UsageJson(const TaskUsage& usage);

}  // namespace taskcell::gateway
