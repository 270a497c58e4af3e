#include <string_view>

#include "gateway/config/toml_document.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// Walks the text as TOML's lexer would, as far as brackets and dots outside of strings and comments
// need it. Where the text is malformed it may go astray, but only behind the point at which a
// parser has stopped already.
class ShapeScan {
 public:
  explicit ShapeScan(std::string_view text) : text_(text) {}

  Status Run() {
    while (at_ < text_.size()) TRY(Step());
    return Ok();
  }

 private:
  bool StartsWith(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void SkipComment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  // `quote` is " or '; a basic string knows backslashes. A single-line string ends with its line
  // even when it is not closed.
  void SkipString(char quote) {
    const std::string triple(3, quote);
    const bool multi_line = StartsWith(triple);
    at_ += multi_line ? 3 : 1;
    while (at_ < text_.size()) {
      if (quote == '"' && text_[at_] == '\\') {
        at_ += 2;
      } else if (multi_line ? StartsWith(triple) : text_[at_] == quote) {
        at_ += multi_line ? 3 : 1;
        // Up to two quotes may stand directly before the closing three.
        while (multi_line && at_ < text_.size() && text_[at_] == quote) ++at_;
        return;
      } else if (!multi_line && text_[at_] == '\n') {
        return;
      } else {
        if (text_[at_] == '\n') ++line_;
        ++at_;
      }
    }
  }

  Status Step() {
    char c = text_[at_];
    switch (c) {
      case '#':
        SkipComment();
        return Ok();
      case '"':
      case '\'':
        SkipString(c);
        return Ok();
      case '\n':
        ++line_;
        [[fallthrough]];
      case '=':
      case ',':
        parts_ = 1;
        break;
      case '[':
      case '{':
        parts_ = 1;
        if (++depth_ > kMaxTomlNesting)
          return Error(Kind::kConfig, Text("line ", line_, ": brackets are nested deeper than ",
                                           kMaxTomlNesting, " levels"));
        break;
      case ']':
      case '}':
        if (depth_ > 0) --depth_;
        break;
      case '.':
        if (++parts_ > kMaxTomlKeyParts)
          return Error(Kind::kConfig, Text("line ", line_, ": a key has more than ",
                                           kMaxTomlKeyParts, " dotted parts"));
        break;
      default:
        break;
    }
    ++at_;
    return Ok();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int parts_ = 1;
  int line_ = 1;
};

}  // namespace

Status CheckTomlShape(std::string_view text) { return ShapeScan(text).Run(); }

}  // namespace taskcell::gateway
