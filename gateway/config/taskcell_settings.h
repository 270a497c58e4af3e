#pragma once

#include <cstdint>
#include <string>

#include "gateway/config/prices.h"
#include "gateway/config/retention.h"
#include "gateway/config/value.h"
#include "launcher/base/result.h"
#include "launcher/mounts/snapshot.h"

namespace taskcell::gateway {

enum class EngineChoice : uint8_t { kAuto, kDocker, kPodman, kNative };

inline constexpr uint64_t kDefaultMaxConcurrent = 4;
inline constexpr uint64_t kMaxMaxConcurrent = 256;

// [taskcell] of config.toml: taskcell's own settings, all optional.
struct TaskcellSettings {
  EngineChoice engine = EngineChoice::kAuto;
  std::string engine_socket;  // absolute path or unix:// URL; empty: as the environment says
  mounts::Subtree unsafe_subtree = mounts::Subtree::kPrune;
  bool cpu_may_be_missing = false;                  // allow_missing = ["cpu"]
  uint64_t max_concurrent = kDefaultMaxConcurrent;  // tasks the gateway runs at once
  std::string root = "host";   // native cells: "host" or the absolute path of a root directory
  bool open_egress = false;    // egress = "open": the engine's bridge, a weaker mode
  std::string upstream_proxy;  // "http://host:port" or "https://host:port"; empty: none
  std::string ca_file;         // absolute path; empty: the system's certificates
  Prices prices;               // [taskcell.prices]
  Retention retention;         // [taskcell.retention]
};

// Reads the section from a parsed config.toml. kConfig with the code invalid_config for an unknown
// key, a wrong type or value, a key that has no effect with the engine chosen (an image, an
// engine_socket or egress "open" with native, a root without it). Pure.
Result<TaskcellSettings> ReadTaskcellSettings(const ConfigValue& config);

}  // namespace taskcell::gateway
