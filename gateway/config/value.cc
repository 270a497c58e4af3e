#include "gateway/config/value.h"

#include <algorithm>

namespace taskcell::gateway {

const ConfigValue* ConfigValue::Find(std::string_view key) const {
  auto at = std::lower_bound(
      table.begin(), table.end(), key,
      [](const ConfigEntry& entry, std::string_view wanted) { return entry.key < wanted; });
  return at != table.end() && at->key == key ? &at->value : nullptr;
}

std::string_view TypeName(ConfigValue::Type type) {
  switch (type) {
    case ConfigValue::Type::kString:
      return "a string";
    case ConfigValue::Type::kInteger:
      return "an integer";
    case ConfigValue::Type::kFloat:
      return "a float";
    case ConfigValue::Type::kBoolean:
      return "a boolean";
    case ConfigValue::Type::kDateTime:
      return "a date or time";
    case ConfigValue::Type::kArray:
      return "an array";
    case ConfigValue::Type::kTable:
      return "a table";
  }
  return "";
}

}  // namespace taskcell::gateway
