#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell {

enum class JsonKind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

// One JSON value as read from outside, whole in memory.
struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  bool boolean = false;
  std::string text;               // kString: the value, valid UTF-8; kNumber: as it was written
  std::vector<JsonValue> items;   // kArray: the elements; kObject: the values
  std::vector<std::string> keys;  // kObject: one for each of `items`

  // The member `key` of an object (the last, where it came twice), or null where there is none.
  const JsonValue* Find(std::string_view key) const;
  // The member's value where it is a string, else empty.
  std::string_view String(std::string_view key) const;
  // The member's value where it is a whole number that fits, else 0.
  uint64_t Unsigned(std::string_view key) const;
  // True where the member is `true`.
  bool True(std::string_view key) const;

  bool is_object() const { return kind == JsonKind::kObject; }
  bool is_array() const { return kind == JsonKind::kArray; }
  bool is_string() const { return kind == JsonKind::kString; }
};

inline constexpr int kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonValues = 200'000;

enum class JsonEnd : uint8_t {
  kComplete,    // `value` is whole
  kIncomplete,  // the text ended where more could have made a value
  kInvalid,     // no continuation makes it JSON, or it is over a bound
};

struct JsonRead {
  JsonEnd end = JsonEnd::kInvalid;
  std::size_t consumed = 0;  // bytes up to the end of the value, where complete
  JsonValue value;
};

// How strings are read.
enum class JsonStrings : uint8_t {
  kStrict,      // RFC 8259
  kRawControl,  // control bytes may stand in a string as they are: some programs print raw newlines
};

// Reads the one JSON value `text` begins with (white space before it is skipped; what follows is
// the caller's). RFC 8259 but for two repairs, so that a string is always valid UTF-8: a lone
// surrogate and every byte that is no UTF-8 become U+FFFD. Deeper than kMaxJsonDepth or more than
// kMaxJsonValues values is kInvalid. Without a library, for the static programs.
JsonRead ReadJson(std::string_view text, JsonStrings strings = JsonStrings::kStrict);

// Reads a text that is one JSON value and white space, nothing else; kViolation otherwise.
Result<JsonValue> ParseJson(std::string_view text);

}  // namespace taskcell
