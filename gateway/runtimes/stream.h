#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/runtimes/runtime.h"

namespace taskcell::gateway {

// What a program's own output says about its run. The pipeline weighs it with the broker's record,
// the exit and the cgroup's events: the stream alone can be forged by a tool's output.
enum class StreamOutcome : uint8_t {
  kSuccess,         // there is a reply (perhaps a partial one: see step_limit)
  kFailed,          // the program ended with an error or without a reply
  kAuthFailed,      // the provider rejected the credential
  kRateLimited,     // quota, rate limit or billing
  kToolViolation,   // a tool outside the file and shell surface, or an unreadable stream
  kStepLimit,       // the step limit was reached and there is no text at all
  kOutputOverflow,  // more output than kMaxTranscriptBytes, or one line over kMaxLineBytes
};
std::string_view OutcomeName(StreamOutcome outcome);  // "success", "auth_failed", ...

inline constexpr std::size_t kMaxLineBytes = 1U << 20U;
inline constexpr std::size_t kMaxTranscriptBytes = 1U << 20U;
inline constexpr std::size_t kMaxKeptStderrBytes = 64U << 10U;
// A program that goes on asking with a credential that was rejected more often than this, one time
// after the other, is ended.
inline constexpr unsigned kMaxRejections = 3;
// So many distinct names of tools are kept of a run.
inline constexpr std::size_t kMaxToldTools = 64;
// More lines than this from which no JSON value can be assembled end the run.
inline constexpr unsigned kMaxUnparsableLines = 3;

struct TokenUsage {
  bool seen = false;
  uint64_t input = 0;
  uint64_t output = 0;
  uint64_t cached_input = 0;
};

struct ParsedRun {
  StreamOutcome outcome = StreamOutcome::kFailed;
  std::optional<std::string> reply;  // valid UTF-8, no control bytes but tab and newline
  bool step_limit = false;           // the step limit was reached, with or without a reply
  bool has_result = false;           // the program's final event came
  bool used_tool = false;
  std::vector<std::string> tools;  // names it told of, where it tells the model's own (not codex)
  unsigned steps = 0;              // tool calls or rounds, as the runtime tells them
  unsigned unparsable_lines = 0;
  std::string violation;    // kToolViolation: the tool, or "unparsable_stream"
  std::string detail;       // the program's own error texts; for the log, never for the reply
  std::string diagnostics;  // the end of its standard error, likewise
  TokenUsage usage;
};

// Reads one run's output as it comes. One object a run; not thread-safe.
class StreamReader {
 public:
  // `max_turns` is enforced here for runtimes without a step limit of their own (codex). On the
  // host a program may use any tool it has.
  enum class Tools : uint8_t { kFileAndShell, kAny };
  StreamReader(Runtime runtime, uint64_t max_turns, Tools tools = Tools::kFileAndShell);
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  // Takes bytes as they came, cut anywhere. Returns false when the run must be ended now: a
  // forbidden tool, too much output, too many steps. Bytes after that are ignored.
  bool TakeStdout(std::string_view bytes);
  // Keeps the last kMaxKeptStderrBytes.
  void TakeStderr(std::string_view bytes);

  // The verdict once the program has ended. `cli_exit` is its exit status, 128+n for signal n.
  ParsedRun Finish(int cli_exit);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// The same for a whole output at once.
ParsedRun ParseRun(Runtime runtime, uint64_t max_turns, std::string_view out, std::string_view err,
                   int cli_exit);

}  // namespace taskcell::gateway
