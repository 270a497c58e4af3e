#pragma once

#include <cstdint>
#include <memory>

#include "gateway/runtimes/run_facts.h"
#include "launcher/base/json_value.h"

namespace taskcell::gateway {

// Understands the events of one program. One object a run.
class EventReader {
 public:
  virtual ~EventReader() = default;
  // Takes one object of the output, in order.
  virtual void Take(const JsonValue& event, RunFacts& facts) = 0;
  // Takes the end of the output.
  virtual void End(RunFacts& facts) = 0;
};

// Who writes claude's events, each with a file and shell set of its own: a tool that is not of it
// is a violation.
enum class ClaudeDialect : uint8_t {
  kClaude,
  kGrok,  // streaming-messages-json
  kLoop,  // taskcell-loop: it has its four tools and no others
};
std::unique_ptr<EventReader> MakeClaudeEvents(ClaudeDialect dialect);
// codex exec --json.
std::unique_ptr<EventReader> MakeCodexEvents();
// agy, as a stream of events or as one printed object.
std::unique_ptr<EventReader> MakeAntigravityEvents();

}  // namespace taskcell::gateway
