#pragma once

#include <cstdint>
#include <optional>

#include "gateway/config/value.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// How long, and how much of it, one kind of record is kept. Not set: without bound.
struct Bound {
  std::optional<uint64_t> days;
  std::optional<uint64_t> bytes;

  bool is_set() const { return days.has_value() || bytes.has_value(); }
};

inline constexpr uint64_t kMaxRetentionDays = 36500;
inline constexpr uint64_t kMaxRetentionBytes = uint64_t{1} << 50U;

// [taskcell.retention] of config.toml.
struct Retention {
  Bound receipts;
  Bound exports;
  Bound logs;
  Bound ledger;
};

// Reads the table from a parsed config.toml: <what>_days and <what>_bytes, positive integers.
// kConfig for anything else. Pure.
Result<Retention> ReadRetention(const ConfigValue& config);

}  // namespace taskcell::gateway
