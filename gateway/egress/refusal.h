#pragma once

#include <string>
#include <string_view>

#include "gateway/egress/route.h"

namespace taskcell::gateway {

// Why the broker does not relay a request, said to the program in the cell: a status, a stable code
// and a sentence, so that it stops retrying.
struct Refusal {
  int status = 403;
  std::string_view code;  // a literal: "egress_path", "egress_server_tool", ...
  std::string message;
};

// The task has used up what it may: said with a status after which no program tries again.
Refusal Exhausted(std::string_view code, std::string message);

// The header lines that go with a refusal: its code, and, where asking again cannot help, the word
// that the clients of Anthropic and OpenAI heed ("x-should-retry: false").
std::string RefusalHeaders(const Refusal& refusal);

// The status it is said with: codex asks five times more at any of them but 400 (seen).
int RefusalStatus(WireApi api, const Refusal& refusal);

// The refusal as a JSON body in the shape of the API's own errors.
std::string RefusalBody(WireApi api, const Refusal& refusal);

// The standard phrase of a status line ("Bad Request"), or "Status".
std::string_view StatusPhrase(int status);

}  // namespace taskcell::gateway
