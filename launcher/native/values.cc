#include "launcher/native/values.h"

#include <optional>

#include "launcher/base/text.h"

namespace taskcell::native {
namespace {

constexpr uint64_t kHighestMillis = uint64_t{1} << 40U;  // 34 years, and no overflow in any unit

Error Bad(std::string_view text, std::string_view wanted) {
  return Error(Kind::kUsage, Text("'", Printable(text), "' is not ", wanted));
}

struct Unit {
  std::string_view suffix;
  uint64_t factor;
};

// `text` as a number with one of `units`, which are tried in order; nothing when it is 0, no number
// or above `highest`.
template <std::size_t kUnits>
std::optional<uint64_t> Scaled(std::string_view text, const Unit (&units)[kUnits],
                               uint64_t highest) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.suffix)) continue;
    std::string_view digits = text.substr(0, text.size() - unit.suffix.size());
    std::optional<uint64_t> number = ParseUnsigned(digits);
    if (!number || *number == 0 || *number > highest / unit.factor) return std::nullopt;
    return *number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  constexpr Unit kUnits[] = {{"K", 1U << 10U}, {"M", 1U << 20U}, {"G", 1U << 30U}, {"", 1}};
  std::optional<uint64_t> bytes = Scaled(text, kUnits, uint64_t{1} << 50U);
  if (!bytes)
    return Bad(text, "a size: a whole number above 0, with K, M or G if wanted, up to 1048576G");
  return *bytes;
}

Result<uint64_t> ParseDuration(std::string_view text) {
  constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"", 1000}};
  std::optional<uint64_t> millis = Scaled(text, kUnits, kHighestMillis);
  if (!millis) {
    return Bad(text, "a time: a whole number above 0, with ms, s, m or h if wanted, up to 305419h");
  }
  return *millis;
}

Result<uint64_t> ParseCpus(std::string_view text) {
  constexpr std::string_view kWanted =
      "a number of cores from 0.001 to 256 with at most three decimals, such as 0.5";
  std::size_t dot = text.find('.');
  std::string_view decimals = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  std::optional<uint64_t> whole = ParseUnsigned(text.substr(0, dot));
  bool pointless = dot != std::string_view::npos && decimals.empty();
  if (!whole || *whole > 256 || decimals.size() > 3 || pointless) return Bad(text, kWanted);
  std::string thousandths(decimals);
  thousandths.resize(3, '0');
  std::optional<uint64_t> part = ParseUnsigned(thousandths);
  if (!part) return Bad(text, kWanted);
  uint64_t millis = *whole * 1000 + *part;
  if (millis == 0 || millis > 256'000) return Bad(text, kWanted);
  return millis;
}

Result<uint64_t> ParseCount(std::string_view text, uint64_t highest) {
  std::optional<uint64_t> number = ParseUnsigned(text);
  if (!number || *number == 0 || *number > highest)
    return Bad(text, Text("a whole number from 1 to ", highest));
  return *number;
}

}  // namespace taskcell::native
