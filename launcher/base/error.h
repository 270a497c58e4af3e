#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace taskcell {

// What class of failure an Error is; it alone decides a program's exit status (EXIT STATUS in each
// man page).
enum class Kind {
  kUsage,        // the caller's command line or request
  kConfig,       // a configuration file or plan
  kUnsupported,  // this host lacks something; the text names it and the fix
  kDenied,       // a permission
  kSystem,       // a system call failed for another reason
  kViolation,    // an untrusted side broke a rule
  kInternal,     // our own bug
};

// A failure: its kind, the errno of the system call behind it (0: none), and a text for a person.
// `code` is empty or a stable reason code with static lifetime, such as
// "resource_limits_unenforced".
struct Error {
  Kind kind;
  int err = 0;
  std::string text;
  std::string_view code;
  const char* file;
  int line;

  explicit Error(Kind the_kind, std::string the_text, int the_err = 0,
                 const char* the_file = __builtin_FILE(), int the_line = __builtin_LINE())
      : kind(the_kind), err(the_err), text(std::move(the_text)), file(the_file), line(the_line) {}

  // Returns this error with `intent`, what the caller was doing, put before the text: "intent:
  // text".
  Error With(std::string_view intent) && {
    text.insert(0, ": ");
    text.insert(0, intent);
    return std::move(*this);
  }

  // Returns this error carrying the stable reason code `the_code` (a string literal).
  Error Coded(std::string_view the_code) && {
    code = the_code;
    return std::move(*this);
  }
};

}  // namespace taskcell
