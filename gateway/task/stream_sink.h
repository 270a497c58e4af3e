#pragma once

#include <string_view>
#include <utility>

#include "gateway/runtimes/stream.h"
#include "gateway/task/answer.h"
#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {

// Feeds a job's output to the stream reader, which says when the run must end.
class StreamSink : public gate::OutputSink {
 public:
  explicit StreamSink(StreamReader& reader) : reader_(reader) {}
  bool OnStdout(std::string_view bytes) override { return reader_.TakeStdout(bytes); }
  bool OnStderr(std::string_view bytes) override {
    reader_.TakeStderr(bytes);
    return true;
  }

 private:
  StreamReader& reader_;
};

// Takes a credential out of all that a run said, before any of it is cut.
inline void RedactRun(ParsedRun& run, std::string_view secret) {
  if (run.reply.has_value()) run.reply = Redact(*std::move(run.reply), secret);
  run.detail = Redact(std::move(run.detail), secret);
  run.diagnostics = Redact(std::move(run.diagnostics), secret);
}

// What the program's exit looks like to a stream reader.
inline int CliExit(const gate::JobEnd& end) {
  constexpr int kSignalBase = 128;
  constexpr int kKilled = 137;
  if (end.outcome != gate::JobOutcome::kExited) return kKilled;
  return end.exit.signal != 0 ? kSignalBase + end.exit.signal : end.exit.code;
}

}  // namespace taskcell::gateway
