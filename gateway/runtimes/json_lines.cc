#include "gateway/runtimes/json_lines.h"

#include <utility>

#include "gateway/runtimes/stream.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// How many places of one line are tried as the start of an object written into it.
constexpr unsigned kMaxEmbeddedTries = 32;

// An object that is an event by itself, not a piece of a larger value.
bool IsEvent(const JsonValue& value) {
  return value.is_object() && (!value.String("type").empty() || !value.String("event").empty());
}

// The end is left alone: a cut may be inside a string, at a space.
std::string_view SkipSpace(std::string_view line) {
  std::string_view trimmed = Trim(line);
  return trimmed.empty() ? trimmed : line.substr(line.find(trimmed[0]));
}

}  // namespace

std::size_t JsonLines::Nesting::Take(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (after_backslash) {
        after_backslash = false;
      } else if (c == '\\') {
        after_backslash = true;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth <= 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

void JsonLines::TakeLine(std::string_view line, std::vector<JsonValue>& found) {
  while (unparsable_ <= kMaxUnparsableLines) {
    if (open_.empty()) {
      line = SkipSpace(line);
      if (line.empty()) return;
    }
    if (TakeWhole(line, found)) {
      if (line.empty()) return;
      continue;
    }
    if (open_.empty()) {
      TakeFresh(line, found);
    } else {
      Continue(line, found);
    }
    return;
  }
}

// Takes the object the line begins with, and leaves the rest of the line. While a value is open
// only an event counts as whole: a line of a printed value may look like an object too.
bool JsonLines::TakeWhole(std::string_view& line, std::vector<JsonValue>& found) {
  if (line.empty() || line[0] != '{') return false;
  JsonRead read = ReadJson(line, strings_);
  if (read.end != JsonEnd::kComplete || (!open_.empty() && !IsEvent(read.value))) return false;
  found.push_back(std::move(read.value));
  line = SkipSpace(line.substr(read.consumed));
  return true;
}

void JsonLines::TakeFresh(std::string_view line, std::vector<JsonValue>& found) {
  bool had_event = SplitEmbedded(line, found);
  if (!line.empty() && line[0] == '{' && ReadJson(line, strings_).end == JsonEnd::kIncomplete) {
    Open(line);
  } else if (!had_event) {
    ++unparsable_;
  }
}

// Looks for an event that runs to the end of the line and was written behind something else; leaves
// that something.
bool JsonLines::SplitEmbedded(std::string_view& line, std::vector<JsonValue>& found) {
  std::size_t at = 0;
  for (unsigned tries = 0; tries < kMaxEmbeddedTries; ++tries) {
    at = line.find("{\"", at + 1);
    if (at == std::string_view::npos) return false;
    JsonRead read = ReadJson(line.substr(at), strings_);
    bool to_the_end = read.end == JsonEnd::kComplete &&
                      Trim(line.substr(at + read.consumed)).empty() && IsEvent(read.value);
    if (!to_the_end) continue;
    found.push_back(std::move(read.value));
    line = line.substr(0, at);
    return true;
  }
  return false;
}

void JsonLines::Continue(std::string_view line, std::vector<JsonValue>& found) {
  Nesting after = nesting_;
  std::size_t closed = after.Take(line);
  if (closed == std::string_view::npos) {
    (void)SplitEmbedded(line,
                        found);  // ignoring: with or without one, the rest belongs to the value
    AppendOpen(line);
    return;
  }
  std::string whole;
  for (const std::string& piece : open_) whole += piece;
  whole += line.substr(0, closed);
  JsonRead read = ReadJson(whole, strings_);
  if (read.end == JsonEnd::kComplete) {
    open_.clear();
    found.push_back(std::move(read.value));
    TakeLine(line.substr(closed), found);
    return;
  }
  AppendOpen(line);
  GiveUpFirst(found);
}

void JsonLines::Open(std::string_view first) {
  nesting_ = Nesting();
  open_.clear();
  AppendOpen(first);
}

void JsonLines::AppendOpen(std::string_view piece) {
  (void)nesting_.Take(piece);  // ignoring: where it closes was looked at before
  open_.emplace_back(piece);
  if (strings_ == JsonStrings::kRawControl) open_.back() += '\n';
}

// The open value came to nothing: its first line counts as unparsable, the others are read again.
void JsonLines::GiveUpFirst(std::vector<JsonValue>& found) {
  std::vector<std::string> pieces = std::exchange(open_, {});
  ++unparsable_;
  for (std::size_t i = 1; i < pieces.size(); ++i) TakeLine(pieces[i], found);
}

void JsonLines::End(std::vector<JsonValue>& found) {
  while (!open_.empty() && unparsable_ <= kMaxUnparsableLines) GiveUpFirst(found);
}

}  // namespace taskcell::gateway
