#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taskcell {

// Joins text and numbers into one string: Text("pids ", 32, " of ", limit).
inline void AppendText(std::string& out, std::string_view part) { out += part; }
inline void AppendText(std::string& out, char part) { out += part; }
template <typename Number>
requires std::is_integral_v<Number>
inline void AppendText(std::string& out, Number part) { out += std::to_string(part); }
template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::string out;
  (AppendText(out, parts), ...);
  return out;
}

// Parses a whole decimal number without sign, space or overflow; nothing otherwise.
std::optional<uint64_t> ParseUnsigned(std::string_view text);

// Parses a whole hexadecimal number of 1 to 16 digits, without sign, prefix or space; nothing
// otherwise.
std::optional<uint64_t> ParseHex(std::string_view text);

// Splits at every `separator`; n separators give n + 1 parts, empty ones kept.
std::vector<std::string_view> Split(std::string_view text, char separator);

// Splits into the non-empty runs between spaces, tabs and newlines.
std::vector<std::string_view> Words(std::string_view text);

// Returns `text` without leading and trailing ASCII white space.
std::string_view Trim(std::string_view text);

// Returns `text` with the letters A to Z in lower case.
std::string Lower(std::string_view text);

// Returns `text` for one line of a terminal: control bytes, backslash and bytes that are not valid
// UTF-8 become \n, \t, \\ or \xNN, so that two different names never print the same and no escape
// sequence gets through.
std::string Printable(std::string_view text);

// Returns `text` as one word of a shell command: as it is where nothing in it means anything to a
// shell, else quoted; control bytes and bytes that are not valid UTF-8 as $'\xNN', so that it can
// be printed and pasted.
std::string ShellWord(std::string_view text);

// Returns the length in bytes (1 to 4) of the UTF-8 sequence `text` starts with, or 0 where it is
// malformed (Unicode table 3-7: no surrogates, no overlong forms). `text` must not be empty.
std::size_t Utf8SequenceLength(std::string_view text);

// True when `text` is valid UTF-8.
bool IsUtf8(std::string_view text);

}  // namespace taskcell
