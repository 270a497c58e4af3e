#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/value.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Reads one table strictly. Every Error is of kind kConfig and names the key as the file spells it
// ("[container.sandbox] pids must be ..."). A key that is absent leaves the caller's default.
class TableReader {
 public:
  // `table` may be nullptr: then every key is absent. `name` is the dotted name of the table.
  TableReader(const ConfigValue* table, std::string name) : table_(table), name_(std::move(name)) {}

  // Refuses every key that is not in `known`, the first by name.
  Status CheckKeys(std::initializer_list<std::string_view> known) const;

  // A positive TOML integer of at most `max`.
  Status Positive(std::string_view key, uint64_t max, uint64_t& out) const;
  Status Boolean(std::string_view key, bool& out) const;
  Status String(std::string_view key, std::string& out) const;
  Status Strings(std::string_view key, std::vector<std::string>& out) const;

  const ConfigValue* Find(std::string_view key) const;
  // "[name] key what (line N)".
  Error Complain(std::string_view key, std::string_view what) const;

 private:
  const ConfigValue* table_;
  std::string name_;
};

// " (line 12)"; nothing for a value that stands in no file.
std::string AtLine(const ConfigValue& value);

// Goes down from a document to the table at `path`, key by key. nullptr when one is absent; kConfig
// naming the part that is there but is no table.
Result<const ConfigValue*> FindTable(const ConfigValue& document,
                                     std::initializer_list<std::string_view> path);

}  // namespace taskcell::gateway
