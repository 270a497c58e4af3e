#include "gateway/config/prices.h"

#include <algorithm>
#include <cmath>

#include "gateway/config/table_reader.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr uint64_t kThousandths = 1000;
constexpr std::size_t kMaxModelBytes = 200;

Status ReadCents(const TableReader& reader, std::string_view key, uint64_t& out) {
  const ConfigValue* value = reader.Find(key);
  if (value == nullptr) return Ok();
  const bool is_integer = value->type == ConfigValue::Type::kInteger;
  const bool is_number = is_integer || value->type == ConfigValue::Type::kFloat;
  const double cents = is_integer ? static_cast<double>(value->integer) : value->number;
  // Said so that what is no number at all is refused too.
  const bool fits = cents >= 0 && cents <= static_cast<double>(kMaxPriceCents);
  if (!is_number || !fits)
    return reader.Complain(
        key, Text("must be a number of cents per million tokens, 0 to ", kMaxPriceCents));
  out = static_cast<uint64_t>(std::ceil(cents * static_cast<double>(kThousandths)));
  return Ok();
}

Result<Price> ReadPrice(const ConfigEntry& model) {
  const std::string shown = Printable(std::string_view(model.key).substr(0, kMaxModelBytes));
  const std::string name = Text("taskcell.prices.\"", shown, "\"");
  if (model.key.empty() || model.key.size() > kMaxModelBytes)
    return Error(Kind::kConfig, Text("[taskcell.prices] names a model of 1 to ", kMaxModelBytes,
                                     " bytes", AtLine(model.value)));
  if (!model.value.IsTable())
    return Error(Kind::kConfig, Text("[", name, "] must be a table with input and output, not ",
                                     TypeName(model.value.type), AtLine(model.value)));
  TableReader reader(&model.value, name);
  TRY(reader.CheckKeys({"input", "output", "cached_input", "cache_write"}));
  for (std::string_view key : {"input", "output"})
    if (reader.Find(key) == nullptr) return reader.Complain(key, "is missing");
  Price price;
  TRY(ReadCents(reader, "input", price.input));
  TRY(ReadCents(reader, "output", price.output));
  price.cached_input = price.input;
  price.cache_write = price.input;
  TRY(ReadCents(reader, "cached_input", price.cached_input));
  TRY(ReadCents(reader, "cache_write", price.cache_write));
  return price;
}

}  // namespace

std::optional<Price> Prices::Of(std::string_view provider, std::string_view model) const {
  auto found = by_model_.find(Text(provider, "/", model));
  if (found == by_model_.end()) found = by_model_.find(model);
  if (found == by_model_.end()) return std::nullopt;
  return found->second;
}

uint64_t CostInMicrocents(const Price& price, const TokenCount& tokens) {
  const uint64_t input = std::min(tokens.input, kMaxTokens);
  const uint64_t cached = std::min(tokens.cached, input);
  const uint64_t written = std::min(tokens.written, input - cached);
  const uint64_t sum = (input - cached - written) * price.input + cached * price.cached_input +
                       written * price.cache_write +
                       std::min(tokens.output, kMaxTokens) * price.output;
  return (sum + kThousandths - 1) / kThousandths;
}

Result<Prices> ReadPrices(const ConfigValue& config) {
  Prices prices;
  const ConfigValue* table = TRY(FindTable(config, {"taskcell", "prices"}));
  if (table == nullptr) return prices;
  if (table->table.size() > kMaxPrices)
    return Error(Kind::kConfig,
                 Text("[taskcell.prices] has more than ", kMaxPrices, " models", AtLine(*table)));
  for (const ConfigEntry& model : table->table)
    prices.by_model_.emplace(model.key, TRY(ReadPrice(model)));
  return prices;
}

}  // namespace taskcell::gateway
