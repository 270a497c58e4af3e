#include "gateway/config/rotation.h"

#include "gateway/config/table_reader.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr uint64_t kLongestCooldownS = uint64_t{24} * 3600;

Result<Rotation> Read(const ConfigValue& config) {
  Rotation rotation;
  TableReader reader(TRY(FindTable(config, {"rotation"})), "rotation");
  std::string strategy = "priority";
  TRY(reader.String("strategy", strategy));
  if (strategy == "round_robin") {
    rotation.strategy = RotationStrategy::kRoundRobin;
  } else if (strategy == "least_cost") {
    rotation.strategy = RotationStrategy::kLeastCost;
  } else if (strategy != "priority" && strategy != "failover") {
    rotation.warnings.push_back(
        reader
            .Complain("strategy",
                      "is unknown: \"priority\" applies (known: priority, failover, "
                      "round_robin, least_cost)")
            .text);
  }
  auto cooldown = static_cast<uint64_t>(rotation.rate_limit_cooldown_s);
  TRY(reader.Positive("cooldown_after_rate_limit_seconds", kLongestCooldownS, cooldown));
  rotation.rate_limit_cooldown_s = static_cast<int64_t>(cooldown);
  return rotation;
}

}  // namespace

Result<Rotation> ReadRotation(const ConfigValue& config) {
  Result<Rotation> rotation = Read(config);
  if (rotation.ok()) return rotation;
  return std::move(rotation).error().Coded("invalid_config");
}

}  // namespace taskcell::gateway
