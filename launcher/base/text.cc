#include "launcher/base/text.h"

#include <algorithm>

#include "launcher/base/printable_message.h"

namespace taskcell {
namespace {

constexpr char kHex[] = "0123456789abcdef";
constexpr std::size_t kUsualWords = 8;

// A letter that Printable leaves as it is, and that stands for itself.
bool IsPlain(char c) { return c >= 0x20 && c < 0x7F && c != '\\'; }

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

void AppendHex(std::string& out, std::string_view bytes) {
  for (char c : bytes) {
    unsigned char byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
}

// `character` is one, or one byte that is none.
void AppendEscaped(std::string& out, std::string_view character, bool is_valid,
                   bool with_backslash) {
  unsigned char first = static_cast<unsigned char>(character[0]);
  if (first == '\n')
    out += "\\n";
  else if (first == '\t')
    out += "\\t";
  else if (first == '\\' && with_backslash)
    out += "\\\\";
  else if (!is_valid || first < 0x20 || first == 0x7F || IsC1Control(character))
    AppendHex(out, character);
  else
    out += character;
}

std::string Escaped(std::string_view text, bool with_backslash) {
  auto end_of_plain = std::find_if_not(text.begin(), text.end(), IsPlain);
  std::string out(text.begin(), end_of_plain);
  text.remove_prefix(out.size());
  while (!text.empty()) {
    std::size_t length = Utf8SequenceLength(text);
    std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    AppendEscaped(out, character, length != 0, with_backslash);
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, uint64_t{10}, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value)) return std::nullopt;
  }
  return value;
}

std::optional<uint64_t> ParseHex(std::string_view text) {
  constexpr std::size_t kMostDigits = 16;
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  uint64_t value = 0;
  for (char c : text) {
    uint64_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint64_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<uint64_t>(c - 'A') + 10;
    } else {
      return std::nullopt;
    }
    value = value << 4U | digit;
  }
  return value;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  parts.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), separator)) + 1);
  while (true) {
    std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  words.reserve(kUsualWords);
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && IsSpace(text[at])) ++at;
    std::size_t start = at;
    while (at < text.size() && !IsSpace(text[at])) ++at;
    if (at > start) words.push_back(text.substr(start, at - start));
  }
  return words;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Printable(std::string_view text) { return Escaped(text, true); }

std::string PrintableMessage(std::string_view text) { return Escaped(text, false); }

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string out;
  bool needs_escapes = Printable(text) != text;
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (needs_escapes && (byte < 0x20 || byte >= 0x7F || c == '\\' || c == '\'')) {
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return (needs_escapes ? "$'" : "'") + out + "'";
}

std::size_t Utf8SequenceLength(std::string_view text) {
  auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(i < text.size() ? text[i] : 0);
  };
  auto tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    bool second =
        (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ? false : tail(1);
    return second && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    bool second =
        (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F) ? false : tail(1);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

bool IsC1Control(std::string_view text) {
  return text.size() > 1 && text[0] == '\xC2' && static_cast<unsigned char>(text[1]) < 0xA0;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace taskcell
