#pragma once

#include <string_view>

#include "gateway/runtimes/stream.h"
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

// What the program's exit looks like to a stream reader.
inline int CliExit(const gate::JobEnd& end) {
  constexpr int kSignalBase = 128;
  constexpr int kKilled = 137;
  if (end.outcome != gate::JobOutcome::kExited) return kKilled;
  return end.exit.signal != 0 ? kSignalBase + end.exit.signal : end.exit.code;
}

}  // namespace taskcell::gateway
