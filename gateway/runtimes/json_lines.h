#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/json_value.h"

namespace taskcell::gateway {

// Finds the JSON objects in a program's output lines, also where the output is not one object a
// line. Seen in the field: another event written into the middle of a line, two objects on one
// line, chatter or terminal codes before an object, and one object printed over many lines. A
// value that was cut off is never repaired.
class JsonLines {
 public:
  // `strings`: how a string that runs over a line's end is put together again. kRawControl keeps
  // the newline as part of it (a program that prints raw newlines), kStrict takes it for the end
  // of an event that was written into the string.
  explicit JsonLines(JsonStrings strings) : strings_(strings) {}

  // Takes one line without its newline and appends the objects it completes to `found`.
  void TakeLine(std::string_view line, std::vector<JsonValue>& found);

  // Takes the end of the output: what is still open is given up, what came after its first line is
  // looked at afresh.
  void End(std::vector<JsonValue>& found);

  // The lines so far from which no value could be assembled. After kMaxUnparsableLines of them
  // (stream.h) nothing is read any more.
  unsigned unparsable() const { return unparsable_; }

 private:
  // How far into nested brackets and strings the open value's text is.
  struct Nesting {
    int depth = 0;
    bool in_string = false;
    bool after_backslash = false;
    // Takes `text` up to the byte that closes the outermost bracket; npos: it stays open.
    std::size_t Take(std::string_view text);
  };

  bool TakeWhole(std::string_view& line, std::vector<JsonValue>& found);
  void TakeFresh(std::string_view line, std::vector<JsonValue>& found);
  bool SplitEmbedded(std::string_view& line, std::vector<JsonValue>& found);
  void Continue(std::string_view line, std::vector<JsonValue>& found);
  void AppendOpen(std::string_view piece);
  void GiveUpFirst(std::vector<JsonValue>& found);
  void Open(std::string_view first);

  JsonStrings strings_;
  std::vector<std::string> open_;  // the pieces of a value that is not closed yet
  Nesting nesting_;
  unsigned unparsable_ = 0;
};

}  // namespace taskcell::gateway
