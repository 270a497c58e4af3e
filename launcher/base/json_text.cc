#include "launcher/base/json_text.h"

#include "launcher/base/printable_message.h"
#include "launcher/base/text.h"

namespace taskcell {

JsonText& JsonText::Open(char bracket) {
  Separate();
  text_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonText& JsonText::Close(char bracket) {
  text_ += bracket;
  needs_comma_ = true;
  return *this;
}

JsonText& JsonText::Key(std::string_view key) {
  Separate();
  AppendQuoted(key);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonText& JsonText::String(std::string_view value) {
  Separate();
  AppendQuoted(value);
  needs_comma_ = true;
  return *this;
}

JsonText& JsonText::Number(int64_t value) {
  Separate();
  text_ += std::to_string(value);
  needs_comma_ = true;
  return *this;
}

JsonText& JsonText::Unsigned(uint64_t value) {
  Separate();
  text_ += std::to_string(value);
  needs_comma_ = true;
  return *this;
}

JsonText& JsonText::Bool(bool value) {
  Separate();
  text_ += value ? "true" : "false";
  needs_comma_ = true;
  return *this;
}

JsonText& JsonText::Raw(std::string_view json) {
  Separate();
  text_ += json;
  needs_comma_ = true;
  return *this;
}

JsonText& JsonText::Null() {
  Separate();
  text_ += "null";
  needs_comma_ = true;
  return *this;
}

void JsonText::Separate() {
  if (needs_comma_) text_ += ',';
}

void JsonText::AppendQuoted(std::string_view value) {
  constexpr char kHex[] = "0123456789abcdef";
  text_ += '"';
  while (!value.empty()) {
    std::size_t length = Utf8SequenceLength(value);
    auto first = static_cast<unsigned char>(value[0]);
    if (length == 0) {
      text_ += "\xEF\xBF\xBD";
      length = 1;
    } else if (first == '"' || first == '\\') {
      text_ += '\\';
      text_ += value[0];
    } else if (first < 0x20 || first == 0x7F || IsC1Control(value)) {
      // Of a control of two bytes the last is its number.
      auto number = static_cast<unsigned char>(value[length - 1]);
      text_ += "\\u00";
      text_ += kHex[number >> 4U];
      text_ += kHex[number & 15U];
    } else {
      text_ += value.substr(0, length);
    }
    value.remove_prefix(length);
  }
  text_ += '"';
}

}  // namespace taskcell
