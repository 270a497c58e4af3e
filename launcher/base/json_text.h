#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace taskcell {

// Builds one JSON text by appending: for the static programs, which carry no JSON library.
//   JsonText json; json.Open('{').Key("exit").Number(0).Close('}');
// Commas are placed by it; nesting is the caller's. Every control is escaped, as terminals obey
// them; strings that are not UTF-8 get U+FFFD for each bad byte.
class JsonText {
 public:
  JsonText& Open(char bracket);   // '{' or '['
  JsonText& Close(char bracket);  // '}' or ']'
  JsonText& Key(std::string_view key);
  JsonText& String(std::string_view value);
  JsonText& Number(int64_t value);
  JsonText& Unsigned(uint64_t value);
  JsonText& Bool(bool value);
  JsonText& Null();
  // Appends `json`, which must be one whole JSON value.
  JsonText& Raw(std::string_view json);

  const std::string& text() const { return text_; }

 private:
  void Separate();
  void AppendQuoted(std::string_view value);

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace taskcell
