#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/runtimes/stream.h"

namespace taskcell::gateway {

// What a run's events said so far, whichever program wrote them. The stream reader judges it once,
// at the end.
struct RunFacts {
  std::string last_text;    // the text of the last message that had any
  std::string result_text;  // the final event's own text
  bool has_result = false;
  bool is_error = false;  // the final event calls itself an error
  bool turn_limit = false;
  bool used_tool = false;
  std::vector<std::string> tools;  // distinct names it told of, the first kMaxToldTools
  unsigned steps = 0;              // tool uses, or rounds, as the runtime counts them
  bool auth_marker = false;        // a field, not a text, says that the credential was rejected
  unsigned rejections = 0;         // times in a row that the program told of a rejected credential
  bool rate_marker = false;        // likewise for rate limit, quota and billing
  std::string violation;           // the first forbidden tool
  std::string errors;              // texts of error events and fields, one a line
  TokenUsage usage;

  void AddError(std::string_view text);
  void Violate(std::string_view tool);
  // A tool was called by this name.
  void UseTool(std::string_view tool);
};

// True when an error text speaks of a rate limit, a quota or missing credit.
bool SaysRateLimited(std::string_view text);
// True when an error text speaks of a rejected or missing credential.
bool SaysAuthFailed(std::string_view text);

// The text without what a terminal would obey: escape sequences whole, and every control character
// but tab and newline. `text` is valid UTF-8, the result too.
std::string PlainText(std::string_view text);

}  // namespace taskcell::gateway
