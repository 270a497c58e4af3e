#include "launcher/base/json_value.h"

#include <utility>

#include "launcher/base/text.h"

namespace taskcell {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHighSurrogate(uint32_t unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool IsLowSurrogate(uint32_t unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

void AppendUtf8(std::string& out, uint32_t point) {
  auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0U | (point >> 6U));
    put(0x80U | (point & 0x3FU));
  } else if (point < 0x10000) {
    put(0xE0U | (point >> 12U));
    put(0x80U | ((point >> 6U) & 0x3FU));
    put(0x80U | (point & 0x3FU));
  } else {
    put(0xF0U | (point >> 18U));
    put(0x80U | ((point >> 12U) & 0x3FU));
    put(0x80U | ((point >> 6U) & 0x3FU));
    put(0x80U | (point & 0x3FU));
  }
}

// A recursive descent over one text; depth is bounded by kMaxJsonDepth, so the stack is too.
class Reader {
 public:
  Reader(std::string_view text, JsonStrings strings) : text_(text), strings_(strings) {}

  JsonRead Read() {
    JsonRead read;
    read.end = Value(read.value, 0);
    read.consumed = at_;
    if (read.end != JsonEnd::kComplete) read.value = JsonValue();
    return read;
  }

 private:
  static constexpr JsonEnd kOk = JsonEnd::kComplete;
  static constexpr JsonEnd kMore = JsonEnd::kIncomplete;
  static constexpr JsonEnd kBad = JsonEnd::kInvalid;

  bool AtEnd() const { return at_ >= text_.size(); }

  void SkipSpace() {
    while (!AtEnd() && IsSpace(text_[at_])) ++at_;
  }

  JsonEnd Value(JsonValue& value, int depth) {
    if (depth > kMaxJsonDepth || ++values_ > kMaxJsonValues) return kBad;
    SkipSpace();
    if (AtEnd()) return kMore;
    switch (text_[at_]) {
      case '{':
        value.kind = JsonKind::kObject;
        return Members(value, depth);
      case '[':
        value.kind = JsonKind::kArray;
        return Elements(value, depth);
      case '"':
        value.kind = JsonKind::kString;
        return String(value.text);
      case 't':
        value.kind = JsonKind::kBool;
        value.boolean = true;
        return Literal("true");
      case 'f':
        value.kind = JsonKind::kBool;
        return Literal("false");
      case 'n':
        return Literal("null");
      default:
        value.kind = JsonKind::kNumber;
        return Number(value.text);
    }
  }

  JsonEnd Literal(std::string_view word) {
    std::string_view rest = text_.substr(at_);
    if (rest.substr(0, word.size()) == word) {
      at_ += word.size();
      return kOk;
    }
    return word.substr(0, rest.size()) == rest ? kMore : kBad;
  }

  // Takes at least one digit into `out`.
  JsonEnd Digits(std::string& out) {
    if (AtEnd()) return kMore;
    if (!IsDigit(text_[at_])) return kBad;
    while (!AtEnd() && IsDigit(text_[at_])) out += text_[at_++];
    return kOk;
  }

  JsonEnd Number(std::string& out) {
    if (text_[at_] == '-') out += text_[at_++];
    if (!AtEnd() && text_[at_] == '0') {
      out += text_[at_++];
    } else if (JsonEnd end = Digits(out); end != kOk) {
      return end;
    }
    if (!AtEnd() && text_[at_] == '.') {
      out += text_[at_++];
      if (JsonEnd end = Digits(out); end != kOk) return end;
    }
    if (!AtEnd() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      out += text_[at_++];
      if (!AtEnd() && (text_[at_] == '+' || text_[at_] == '-')) out += text_[at_++];
      if (JsonEnd end = Digits(out); end != kOk) return end;
    }
    return kOk;
  }

  JsonEnd String(std::string& out) {
    ++at_;  // the opening quote
    while (!AtEnd()) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return kOk;
      }
      if (c == '\\') {
        if (JsonEnd end = Escape(out); end != kOk) return end;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20 && strings_ == JsonStrings::kStrict) return kBad;
      std::size_t length = Utf8SequenceLength(text_.substr(at_));
      out += length == 0 ? kReplacement : text_.substr(at_, length);
      at_ += length == 0 ? 1 : length;
    }
    return kMore;
  }

  JsonEnd Escape(std::string& out) {
    ++at_;  // the backslash
    if (AtEnd()) return kMore;
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
    char c = text_[at_++];
    if (c == 'u') return UnicodeEscape(out);
    std::size_t which = kNames.find(c);
    if (which == std::string_view::npos) return kBad;
    out += kBytes[which];
    return kOk;
  }

  JsonEnd UnicodeEscape(std::string& out) {
    uint32_t unit = 0;
    if (JsonEnd end = FourHex(unit); end != kOk) return end;
    if (IsHighSurrogate(unit) && text_.substr(at_, 2) == "\\u") {
      std::size_t before = at_;
      at_ += 2;
      uint32_t low = 0;
      if (JsonEnd end = FourHex(low); end != kOk) return end;
      if (IsLowSurrogate(low)) {
        AppendUtf8(out, 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00));
        return kOk;
      }
      at_ = before;  // the second escape stands for itself
    }
    if (IsHighSurrogate(unit) || IsLowSurrogate(unit)) {
      out += kReplacement;
    } else {
      AppendUtf8(out, unit);
    }
    return kOk;
  }

  JsonEnd FourHex(uint32_t& unit) {
    for (int i = 0; i < 4; ++i) {
      if (AtEnd()) return kMore;
      char c = text_[at_++];
      uint32_t digit = 0;
      if (IsDigit(c)) {
        digit = static_cast<uint32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<uint32_t>(c - 'a') + 10;
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<uint32_t>(c - 'A') + 10;
      } else {
        return kBad;
      }
      unit = unit << 4U | digit;
    }
    return kOk;
  }

  // After an element: takes ',' (more follows: true) or `close` (false).
  JsonEnd Next(char close, bool& more) {
    SkipSpace();
    if (AtEnd()) return kMore;
    char c = text_[at_++];
    more = c == ',';
    return more || c == close ? kOk : kBad;
  }

  // At the first element: true when the list is empty and closed.
  JsonEnd First(char close, bool& empty) {
    ++at_;  // the opening bracket
    SkipSpace();
    if (AtEnd()) return kMore;
    empty = text_[at_] == close;
    if (empty) ++at_;
    return kOk;
  }

  JsonEnd Elements(JsonValue& array, int depth) {
    bool empty = false;
    if (JsonEnd end = First(']', empty); end != kOk || empty) return end;
    for (bool more = true; more;) {
      if (JsonEnd end = Value(array.items.emplace_back(), depth + 1); end != kOk) return end;
      if (JsonEnd end = Next(']', more); end != kOk) return end;
    }
    return kOk;
  }

  JsonEnd Members(JsonValue& object, int depth) {
    bool empty = false;
    if (JsonEnd end = First('}', empty); end != kOk || empty) return end;
    for (bool more = true; more;) {
      SkipSpace();
      if (AtEnd()) return kMore;
      if (text_[at_] != '"') return kBad;
      if (JsonEnd end = String(object.keys.emplace_back()); end != kOk) return end;
      SkipSpace();
      if (AtEnd()) return kMore;
      if (text_[at_++] != ':') return kBad;
      if (JsonEnd end = Value(object.items.emplace_back(), depth + 1); end != kOk) return end;
      if (JsonEnd end = Next('}', more); end != kOk) return end;
    }
    return kOk;
  }

  std::string_view text_;
  JsonStrings strings_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (std::size_t i = keys.size(); i > 0; --i) {
    if (keys[i - 1] == key) return &items[i - 1];
  }
  return nullptr;
}

std::string_view JsonValue::String(std::string_view key) const {
  const JsonValue* member = Find(key);
  return member != nullptr && member->is_string() ? std::string_view(member->text) : "";
}

uint64_t JsonValue::Unsigned(std::string_view key) const {
  const JsonValue* member = Find(key);
  if (member == nullptr || member->kind != JsonKind::kNumber) return 0;
  return ParseUnsigned(member->text).value_or(0);
}

bool JsonValue::True(std::string_view key) const {
  const JsonValue* member = Find(key);
  return member != nullptr && member->kind == JsonKind::kBool && member->boolean;
}

JsonRead ReadJson(std::string_view text, JsonStrings strings) {
  return Reader(text, strings).Read();
}

Result<JsonValue> ParseJson(std::string_view text) {
  JsonRead read = ReadJson(text);
  if (read.end == JsonEnd::kIncomplete) return Error(Kind::kViolation, "JSON ends too early");
  if (read.end == JsonEnd::kInvalid) {
    return Error(Kind::kViolation, Text("not JSON, or over its bounds, at byte ", read.consumed));
  }
  if (!Trim(text.substr(read.consumed)).empty()) {
    return Error(Kind::kViolation, Text("more after the JSON value, at byte ", read.consumed));
  }
  return std::move(read.value);
}

}  // namespace taskcell
