#include "gateway/runtimes/stream.h"

#include <utility>
#include <vector>

#include "gateway/runtimes/event_reader.h"
#include "gateway/runtimes/json_lines.h"
#include "gateway/runtimes/run_facts.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kUnparsable = "unparsable_stream";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::unique_ptr<EventReader> EventsOf(Runtime runtime) {
  switch (runtime) {
    case Runtime::kCodex:
      return MakeCodexEvents();
    case Runtime::kAntigravity:
      return MakeAntigravityEvents();
    case Runtime::kOpenAiCompat:
      return MakeClaudeEvents(ClaudeDialect::kLoop);
    case Runtime::kGrok:
      return MakeClaudeEvents(ClaudeDialect::kGrok);
    case Runtime::kClaude:
      break;
  }
  return MakeClaudeEvents(ClaudeDialect::kClaude);
}

// agy prints raw newlines inside strings (its issue 702); the others print one event a line.
JsonStrings StringsOf(Runtime runtime) {
  return runtime == Runtime::kAntigravity ? JsonStrings::kRawControl : JsonStrings::kStrict;
}

std::optional<std::string> Reply(const RunFacts& facts, bool only_text) {
  for (const std::string* text :
       {only_text ? &facts.last_text : &facts.result_text, &facts.last_text}) {
    std::string plain = PlainText(*text);
    std::string_view trimmed = Trim(plain);
    if (!trimmed.empty()) return std::string(trimmed);
  }
  return std::nullopt;
}

}  // namespace

class StreamReader::State {
 public:
  State(Runtime runtime, uint64_t max_turns, Tools tools)
      : any_tool_(tools == Tools::kAny),
        counts_steps_(runtime == Runtime::kCodex || runtime == Runtime::kAntigravity),
        max_turns_(max_turns),
        lines_(StringsOf(runtime)),
        events_(EventsOf(runtime)) {}

  bool TakeStdout(std::string_view bytes) {
    while (!stopped_ && !bytes.empty()) {
      std::size_t newline = bytes.find('\n');
      std::string_view piece = bytes.substr(0, newline);
      bool ends = newline != std::string_view::npos;
      std::size_t taken = piece.size() + (ends ? 1 : 0);
      if (line_.size() + piece.size() > kMaxLineBytes ||
          transcript_bytes_ + taken > kMaxTranscriptBytes) {
        overflow_ = stopped_ = true;
        break;
      }
      transcript_bytes_ += taken;
      line_ += piece;
      if (ends) EndLine();
      bytes.remove_prefix(taken);
    }
    return !stopped_;
  }

  void TakeStderr(std::string_view bytes) {
    if (bytes.size() > kMaxKeptStderrBytes) bytes.remove_prefix(bytes.size() - kMaxKeptStderrBytes);
    stderr_ += bytes;
    if (stderr_.size() > 2 * kMaxKeptStderrBytes) KeepEndOfStderr();
  }

  ParsedRun Finish(int cli_exit) {
    if (!stopped_) {
      if (!line_.empty()) EndLine();  // a whole last line counts without its newline
      std::vector<JsonValue> found;
      lines_.End(found);
      TakeEvents(found);
    }
    const bool unreadable = facts_.violation == kUnparsable;
    events_->End(facts_);
    if (any_tool_ && !unreadable) facts_.violation.clear();
    KeepEndOfStderr();
    return Judge(cli_exit);
  }

 private:
  void EndLine() {
    std::string_view line = line_;
    if (first_line_ && line.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
      line.remove_prefix(kByteOrderMark.size());
    }
    first_line_ = false;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    std::vector<JsonValue> found;
    lines_.TakeLine(line, found);
    line_.clear();
    TakeEvents(found);
  }

  void TakeEvents(const std::vector<JsonValue>& found) {
    for (const JsonValue& event : found) {
      events_->Take(event, facts_);
      if (any_tool_) facts_.violation.clear();
      if (counts_steps_ && facts_.steps > max_turns_) step_limit_ = stopped_ = true;
      if (!facts_.violation.empty()) stopped_ = true;
      if (facts_.rejections > kMaxRejections) stopped_ = true;
      if (stopped_) return;
    }
    if (lines_.unparsable() > kMaxUnparsableLines) {
      facts_.Violate(kUnparsable);
      stopped_ = true;
    }
  }

  void KeepEndOfStderr() {
    if (stderr_.size() > kMaxKeptStderrBytes) {
      stderr_.erase(0, stderr_.size() - kMaxKeptStderrBytes);
    }
  }

  // The order is the platform's: what was forbidden first, then what the provider said, then the
  // limits, then the reply.
  StreamOutcome Outcome(bool failed, const ParsedRun& run) const {
    std::string told = failed ? Text(facts_.errors, "\n", stderr_) : std::string();
    if (!run.violation.empty()) return StreamOutcome::kToolViolation;
    if (failed && (facts_.rate_marker || SaysRateLimited(told))) return StreamOutcome::kRateLimited;
    if (overflow_) return StreamOutcome::kOutputOverflow;
    // A tool's output can end up in an error text: words count only while no tool ran.
    bool says_auth = !facts_.used_tool && SaysAuthFailed(told);
    if (failed && (facts_.auth_marker || says_auth)) return StreamOutcome::kAuthFailed;
    if (run.step_limit) {
      return run.reply.has_value() ? StreamOutcome::kSuccess : StreamOutcome::kStepLimit;
    }
    return run.reply.has_value() ? StreamOutcome::kSuccess : StreamOutcome::kFailed;
  }

  ParsedRun Judge(int cli_exit) const {
    ParsedRun run;
    run.step_limit = facts_.turn_limit || step_limit_;
    run.has_result = facts_.has_result;
    run.used_tool = facts_.used_tool;
    run.tools = facts_.tools;
    run.steps = facts_.steps;
    run.unparsable_lines = lines_.unparsable();
    run.violation = facts_.violation;
    run.usage = facts_.usage;
    run.detail = PlainText(facts_.errors);
    run.diagnostics = PlainText(stderr_);
    bool failed = cli_exit != 0 || facts_.is_error || !facts_.has_result;
    if (run.step_limit) {
      run.reply = Reply(facts_, true);
    } else if (!failed) {
      run.reply = Reply(facts_, false);
    }
    run.outcome = Outcome(failed, run);
    if (run.outcome != StreamOutcome::kSuccess) run.reply.reset();
    return run;
  }

  bool any_tool_;
  bool counts_steps_;
  uint64_t max_turns_;
  JsonLines lines_;
  std::unique_ptr<EventReader> events_;
  RunFacts facts_;
  std::string line_;
  std::string stderr_;
  std::size_t transcript_bytes_ = 0;
  bool first_line_ = true;
  bool stopped_ = false;
  bool overflow_ = false;
  bool step_limit_ = false;
};

StreamReader::StreamReader(Runtime runtime, uint64_t max_turns, Tools tools)
    : state_(std::make_unique<State>(runtime, max_turns, tools)) {}
StreamReader::~StreamReader() = default;

bool StreamReader::TakeStdout(std::string_view bytes) { return state_->TakeStdout(bytes); }
void StreamReader::TakeStderr(std::string_view bytes) { state_->TakeStderr(bytes); }
ParsedRun StreamReader::Finish(int cli_exit) { return state_->Finish(cli_exit); }

ParsedRun ParseRun(Runtime runtime, uint64_t max_turns, std::string_view out, std::string_view err,
                   int cli_exit) {
  StreamReader reader(runtime, max_turns);
  reader.TakeStderr(err);
  (void)reader.TakeStdout(out);  // ignoring: there is no program to end
  return reader.Finish(cli_exit);
}

std::string_view OutcomeName(StreamOutcome outcome) {
  switch (outcome) {
    case StreamOutcome::kSuccess:
      return "success";
    case StreamOutcome::kFailed:
      return "failed";
    case StreamOutcome::kAuthFailed:
      return "auth_failed";
    case StreamOutcome::kRateLimited:
      return "rate_limited";
    case StreamOutcome::kToolViolation:
      return "tool_violation";
    case StreamOutcome::kStepLimit:
      return "step_limit";
    case StreamOutcome::kOutputOverflow:
      return "output_overflow";
  }
  return "failed";
}

}  // namespace taskcell::gateway
