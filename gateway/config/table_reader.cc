#include "gateway/config/table_reader.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMaxShownKey = 80;

std::string Shown(std::string_view key) { return Printable(key.substr(0, kMaxShownKey)); }

// How many letters must be put in, taken out or exchanged to make one word of the other.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t exchanged = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, exchanged});
    }
  }
  return row.back();
}

// "; did you mean `memory_bytes`?" where the key is near one that exists or the beginning of one.
std::string Nearest(std::string_view key, std::initializer_list<std::string_view> known) {
  constexpr std::size_t kNear = 3;
  std::string_view best;
  std::size_t nearest = kNear;
  for (std::string_view candidate : known) {
    const bool begins = key.size() >= kNear && candidate.starts_with(key);
    const std::size_t distance = begins ? 0 : Distance(key.substr(0, kMaxShownKey), candidate);
    if (distance >= nearest || distance >= candidate.size()) continue;
    best = candidate;
    nearest = distance;
  }
  return best.empty() ? "" : Text("; did you mean `", best, "`?");
}

}  // namespace

const ConfigValue* TableReader::Find(std::string_view key) const {
  return table_ == nullptr ? nullptr : table_->Find(key);
}

Error TableReader::Complain(std::string_view key, std::string_view what) const {
  const ConfigValue* value = Find(key);
  return Error(Kind::kConfig, Text("[", name_, "] ", Shown(key), " ", what,
                                   value == nullptr ? "" : AtLine(*value)));
}

Status TableReader::CheckKeys(std::initializer_list<std::string_view> known) const {
  if (table_ == nullptr) return Ok();
  for (const ConfigEntry& entry : table_->table) {
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      return Error(Kind::kConfig, Text("[", name_, "] has an unknown key `", Shown(entry.key), "`",
                                       AtLine(entry.value), Nearest(entry.key, known)));
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

std::string AtLine(const ConfigValue& value) {
  return value.line == 0 ? "" : Text(" (line ", value.line, ")");
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
      return Error(Kind::kConfig,
                   Text("[", name, "] must be a table, not ", TypeName(at->type), AtLine(*at)));
  }
  return at;
}

}  // namespace taskcell::gateway
