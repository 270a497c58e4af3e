#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taskcell::gateway {

struct ConfigEntry;

// One value of a parsed configuration file.
struct ConfigValue {
  enum class Type : uint8_t { kString, kInteger, kFloat, kBoolean, kDateTime, kArray, kTable };

  Type type = Type::kTable;
  uint32_t line = 0;    // of its file, from 1; 0: it stands in none
  std::string text;     // kString; kDateTime: as RFC 3339
  int64_t integer = 0;  // kInteger
  double number = 0;    // kFloat
  bool boolean = false;
  std::vector<ConfigValue> array;
  std::vector<ConfigEntry> table;  // sorted by key, keys unique

  bool IsTable() const { return type == Type::kTable; }
  // The value of `key` in a table; nullptr when it is no table or has no such key.
  const ConfigValue* Find(std::string_view key) const;
};

struct ConfigEntry {
  std::string key;
  ConfigValue value;
};

// "a string", "an integer", ...: for messages.
std::string_view TypeName(ConfigValue::Type type);

}  // namespace taskcell::gateway
