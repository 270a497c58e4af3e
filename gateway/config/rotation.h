#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/config/value.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

enum class RotationStrategy : uint8_t {
  kPriority,    // "priority", "failover"
  kRoundRobin,  // "round_robin": the one that was used longest ago
  kLeastCost,   // "least_cost": subscriptions before keys, then the one used longest ago
};

// [rotation] of config.toml: which of several accounts pays next.
struct Rotation {
  RotationStrategy strategy = RotationStrategy::kPriority;
  int64_t rate_limit_cooldown_s = 120;
  std::vector<std::string> warnings;  // an unknown strategy: "priority" applies
};

// Reads the section from a parsed config.toml; keys that belong to the platform are ignored. Error
// code invalid_config for a wrong type. Pure.
Result<Rotation> ReadRotation(const ConfigValue& config);

}  // namespace taskcell::gateway
