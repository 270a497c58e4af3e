#include "gateway/egress/json_shorten.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101U;
constexpr uint64_t kHighs = 0x8080808080808080U;

// A high bit for each byte of `word` that is less than `limit`, which is at most 0x80, and perhaps
// for one above such a byte: enough to tell whether there is any.
constexpr uint64_t AnyBelow(uint64_t word, uint64_t limit) {
  return (word - kOnes * limit) & ~word & kHighs;
}
constexpr uint64_t AnyOf(uint64_t word, char c) {
  return AnyBelow(word ^ (kOnes * static_cast<unsigned char>(c)), 1);
}

// ASCII that stands for itself in a string.
bool IsPlain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 &&
         c != '"' && c != '\\';
}

std::size_t PlainRun(std::string_view text) {
  std::size_t at = 0;
  for (uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (((word & kHighs) | AnyBelow(word, 0x20) | AnyOf(word, '"') | AnyOf(word, '\\')) != 0) break;
  }
  while (at < text.size() && IsPlain(text[at])) ++at;
  return at;
}

// Length of the character or escape that `text`, which is not plain, begins with; 0 for the
// string's end, for \u and for what may not stand in a string.
std::size_t OneLength(std::string_view text) {
  if (text[0] == '\\') {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    return text.size() > 1 && kEscapes.find(text[1]) != std::string_view::npos ? 2 : 0;
  }
  return static_cast<unsigned char>(text[0]) < 0x80 ? 0 : Utf8SequenceLength(text);
}

// Where the string that goes on with `text` ends: at its quote, or with the text.
std::size_t EndOfString(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2U : 1U;
  return std::min(at, text.size());
}

}  // namespace

std::string ShortenStrings(std::string_view json, std::size_t kept) {
  std::string out;
  while (!json.empty()) {
    const std::size_t quote = std::min(json.find('"'), json.size());
    out += json.substr(0, quote + 1);
    json.remove_prefix(std::min(quote + 1, json.size()));
    std::size_t size = 0;  // of what may be left out behind `kept`
    std::size_t cut = 0;   // the first place from there on between two characters
    for (std::size_t length = 1; length > 0 && size < json.size(); size += length) {
      length = PlainRun(json.substr(size));
      if (cut == 0 && size + length >= kept) cut = std::max(kept, size);
      if (length == 0) length = OneLength(json.substr(size));
    }
    out += json.substr(0, cut == 0 ? size : cut);
    json.remove_prefix(size);
    const std::size_t rest = EndOfString(json);
    out += json.substr(0, rest + 1);
    json.remove_prefix(std::min(rest + 1, json.size()));
  }
  return out;
}

}  // namespace taskcell::gateway
