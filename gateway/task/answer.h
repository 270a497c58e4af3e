#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/task/usage.h"
#include "gateway/task/verdict.h"
#include "launcher/base/error.h"

namespace taskcell::gateway {

// What a task comes back with.
struct TaskAnswer {
  std::string code = "ok";           // or the guide's reason code
  std::string message;               // why not, with the remedy; empty on success
  std::string detail;                // more for the operator, never for the requester
  std::optional<std::string> reply;  // success only
  bool step_limit = false;
  bool for_host = false;     // the sandbox had no part in it
  bool ran_on_host = false;  // a program was started there, without isolation
  bool by_gateway = false;   // else this process ran it
  std::string task_id;       // in the ledger; empty: it was not admitted
  std::string receipt_json;  // empty: no run began
  std::string receipt_path;  // empty: not written
  std::string export_path;   // empty: nothing was exported
  TaskUsage usage;           // of all its runs; only in the process that ran it
  std::vector<std::string> warnings;

  bool ok() const { return code == "ok"; }
};

// True for the codes of a task that was not begun because the sandbox cannot run: the guide's first
// group.
bool IsUnavailable(std::string_view code);

// The outcome words: success, refused, failed, auth_failed, rate_limited, tool_violation,
// step_limit, timed_out, cancelled.
std::string_view OutcomeWord(std::string_view code);

// The exit status of `taskcell run`: 0 success, 1 failed, 2 bad request (invalid_prompt,
// agent_not_found, unknown_kind), 3 refused, 4 the gateway was lost, 124 timed out, 130 cancelled.
int ExitStatus(std::string_view code);

// The answer for an Error of admission, set-up or verification: its code (internal_error where it
// has none), the guide's message around what may be told of it (PublicText), and its whole text as
// the detail.
TaskAnswer AnswerFor(const Error& error);

// The answer for a task that ran, as its evidence was judged.
TaskAnswer AnswerOf(Verdict verdict);

// The text a delegating agent gets when there is no reply (zh-TW, as the platform sends it), in one
// of three forms: the sandbox refused, the sandboxed task failed, anything else; the reply itself
// when there is one.
std::string DelegationReply(const TaskAnswer& answer);

inline constexpr std::size_t kMaxMessageBytes = 400;
inline constexpr std::size_t kMaxDetailBytes = 600;

// One line of at most `limit` bytes: runs of white space become one space, a cut falls between
// characters and shows as "...".
std::string OneLine(std::string_view text, std::size_t limit);

// Replaces every occurrence of `secret` (when it has at least 8 bytes) and of whatever has the form
// of a Google API key by "<redacted>". Whoever cuts a text redacts it first: half of a secret is
// not found.
std::string Redact(std::string text, std::string_view secret);

}  // namespace taskcell::gateway
