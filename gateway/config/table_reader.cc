#include "gateway/config/table_reader.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMaxShownKey = 80;

std::string Shown(std::string_view key) { return Printable(key.substr(0, kMaxShownKey)); }

}  // namespace

const ConfigValue* TableReader::Find(std::string_view key) const {
  return table_ == nullptr ? nullptr : table_->Find(key);
}

Error TableReader::Complain(std::string_view key, std::string_view what) const {
  return Error(Kind::kConfig, Text("[", name_, "] ", Shown(key), " ", what));
}

Status TableReader::CheckKeys(std::initializer_list<std::string_view> known) const {
  if (table_ == nullptr) return Ok();
  for (const ConfigEntry& entry : table_->table) {
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      return Error(Kind::kConfig,
                   Text("[", name_, "] has an unknown key `", Shown(entry.key), "`"));
  }
  return Ok();
}

Status TableReader::Positive(std::string_view key, uint64_t max, uint64_t& out) const {
  const ConfigValue* value = Find(key);
  if (value == nullptr) return Ok();
  if (value->type != ConfigValue::Type::kInteger || value->integer <= 0)
    return Complain(key, "must be a positive integer");
  auto number = static_cast<uint64_t>(value->integer);
  if (number > max) return Complain(key, Text("must be at most ", max));
  out = number;
  return Ok();
}

Status TableReader::Boolean(std::string_view key, bool& out) const {
  const ConfigValue* value = Find(key);
  if (value == nullptr) return Ok();
  if (value->type != ConfigValue::Type::kBoolean)
    return Complain(key, Text("must be true or false, not ", TypeName(value->type)));
  out = value->boolean;
  return Ok();
}

Status TableReader::String(std::string_view key, std::string& out) const {
  const ConfigValue* value = Find(key);
  if (value == nullptr) return Ok();
  if (value->type != ConfigValue::Type::kString)
    return Complain(key, Text("must be a string, not ", TypeName(value->type)));
  out = value->text;
  return Ok();
}

Status TableReader::Strings(std::string_view key, std::vector<std::string>& out) const {
  const ConfigValue* value = Find(key);
  if (value == nullptr) return Ok();
  if (value->type != ConfigValue::Type::kArray)
    return Complain(key, Text("must be an array of strings, not ", TypeName(value->type)));
  out.clear();
  for (const ConfigValue& element : value->array) {
    if (element.type != ConfigValue::Type::kString)
      return Complain(key, Text("must hold strings only, not ", TypeName(element.type)));
    out.push_back(element.text);
  }
  return Ok();
}

Result<const ConfigValue*> FindTable(const ConfigValue& document,
                                     std::initializer_list<std::string_view> path) {
  const ConfigValue* at = &document;
  std::string name;
  for (std::string_view key : path) {
    at = at->Find(key);
    if (at == nullptr) return at;
    name += name.empty() ? std::string(key) : Text(".", key);
    if (!at->IsTable())
      return Error(Kind::kConfig, Text("[", name, "] must be a table, not ", TypeName(at->type)));
  }
  return at;
}

}  // namespace taskcell::gateway
